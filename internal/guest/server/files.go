package server

import (
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

func (st *stream) stat(d *wire.Decoder) (*wire.Frame, error) {
	r := d.PathRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	info, err := b.Stat(st.ctx, r.Path)
	return st.info(info, err)
}

func (st *stream) lstat(d *wire.Decoder) (*wire.Frame, error) {
	r := d.PathRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	info, err := fsbridge.Lstat(st.ctx, b, r.Path)
	return st.info(info, err)
}

func (st *stream) info(info fsbridge.FileInfo, err error) (*wire.Frame, error) {
	if err != nil {
		return nil, err
	}
	f := st.done(128)
	f.B = wire.AppendInfo(f.B, info)
	return f, nil
}

func (st *stream) mkdir(d *wire.Decoder) (*wire.Frame, error) {
	r := d.MkdirRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Mkdir(st.ctx, b, r.Path, r.Options))
}

func (st *stream) remove(d *wire.Decoder) (*wire.Frame, error) {
	r := d.RemoveRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Remove(st.ctx, b, r.Path, r.Options))
}

func (st *stream) rename(d *wire.Decoder) (*wire.Frame, error) {
	r := d.RenameRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Rename(st.ctx, b, r.Old, r.New, r.Options))
}

func (st *stream) copy(d *wire.Decoder) (*wire.Frame, error) {
	r := d.CopyRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Copy(st.ctx, b, r.Src, r.Dst, r.Options))
}

func (st *stream) readLink(d *wire.Decoder) (*wire.Frame, error) {
	r := d.PathRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	target, err := fsbridge.ReadLink(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	f := st.done(len(target) + 4)
	f.B = wire.AppendString(f.B, target)
	return f, nil
}

func (st *stream) symlink(d *wire.Decoder) (*wire.Frame, error) {
	r := d.SymlinkRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Symlink(st.ctx, b, r.Target, r.Path, r.Options))
}

func (st *stream) chmod(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ChmodRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	return st.empty(fsbridge.Chmod(st.ctx, b, r.Path, r.Mode))
}

func (st *stream) hash(d *wire.Decoder) (*wire.Frame, error) {
	r := d.PathRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	h, err := fsbridge.HashFile(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	f := st.done(80)
	f.B = wire.AppendHash(f.B, h)
	return f, nil
}
