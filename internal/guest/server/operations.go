package server

import (
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// operation answers a call: with the frame that ends it, or an error.
type operation func(st *stream, d *wire.Decoder) (*wire.Frame, error)

// operations are indexed by wire.Op; a test checks that none is missing.
var operations = [...]operation{
	wire.OpEcho: (*stream).echo,

	wire.OpStat:       (*stream).stat,
	wire.OpLstat:      (*stream).lstat,
	wire.OpRead:       (*stream).read,
	wire.OpReadSource: (*stream).readSource,
	wire.OpReadRange:  (*stream).readRange,
	wire.OpOpenReader: (*stream).openReader,
	wire.OpWrite:      (*stream).write,
	wire.OpCreate:     (*stream).create,
	wire.OpAppend:     (*stream).append,
	wire.OpMkdir:      (*stream).mkdir,
	wire.OpRemove:     (*stream).remove,
	wire.OpRename:     (*stream).rename,
	wire.OpCopy:       (*stream).copy,
	wire.OpReadLink:   (*stream).readLink,
	wire.OpSymlink:    (*stream).symlink,
	wire.OpChmod:      (*stream).chmod,
	wire.OpList:       (*stream).list,
	wire.OpListStream: (*stream).listStream,
	wire.OpWalk:       (*stream).walk,
	wire.OpHash:       (*stream).hash,
	wire.OpGlob:       (*stream).glob,
	wire.OpWatch:      (*stream).watch,

	wire.OpExec:      (*stream).exec,
	wire.OpSignal:    (*stream).signal,
	wire.OpResize:    (*stream).resize,
	wire.OpTerminate: (*stream).terminate,
	wire.OpSweep:     (*stream).sweep,
	wire.OpCall:      (*stream).call,
}

// malformed is the answer to a request that could not be decoded.
func malformed(err error) error {
	return fmt.Errorf("malformed request: %w (%w)", fsbridge.ErrInvalid, err)
}

// files returns the bridge, or the error of a server that has none.
func (st *stream) files(d *wire.Decoder) (fsbridge.Bridge, error) {
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	if st.s.cfg.Files == nil {
		return nil, fmt.Errorf("%w: this server serves no files", fsbridge.ErrUnsupported)
	}
	return st.s.cfg.Files, nil
}

func (st *stream) echo(d *wire.Decoder) (*wire.Frame, error) {
	data := d.Rest()
	f := st.done(len(data))
	f.B = append(f.B, data...)
	return f, nil
}
