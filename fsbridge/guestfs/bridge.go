package guestfs

import (
	"context"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// DefaultEntryLimit bounds ReadDirectory where Options say nothing, in entries.
const DefaultEntryLimit = 1_000_000

// Options direct New. The zero value is fine.
type Options struct {
	// Assert is the guard; nil means none. Keeps FSB-10.
	Assert fsbridge.AssertFunc
	// Revoked reports that execution in the environment has been revoked; its
	// error refuses every change, and no read. Nil means never. Keeps FSB-12.
	Revoked func() error
	// ReadLimit bounds ReadFile, ReadFileWithSource and the n of ReadRange, in
	// bytes; zero means fsbridge.DefaultReadLimit.
	ReadLimit int64
	// EntryLimit bounds ReadDirectory; zero means DefaultEntryLimit.
	EntryLimit int
	// Mounts is the mount table as the host knows it. Nil means that of the
	// helper's greeting.
	Mounts fsbridge.MountTable
}

// Bridge is a bridge over a connection. It is safe for concurrent use. It declares
// what the server declares. Keeps FSB-01 to FSB-12.
type Bridge struct {
	conn   *client.Conn
	opts   Options
	has    map[fsbridge.Capability]bool
	mounts fsbridge.MountTable
}

var (
	_ fsbridge.Bridge           = (*Bridge)(nil)
	_ fsbridge.Declarer         = (*Bridge)(nil)
	_ fsbridge.Lstater          = (*Bridge)(nil)
	_ fsbridge.SourceReader     = (*Bridge)(nil)
	_ fsbridge.RangeReader      = (*Bridge)(nil)
	_ fsbridge.StreamReader     = (*Bridge)(nil)
	_ fsbridge.StreamWriter     = (*Bridge)(nil)
	_ fsbridge.ExclusiveCreator = (*Bridge)(nil)
	_ fsbridge.Appender         = (*Bridge)(nil)
	_ fsbridge.Mkdirer          = (*Bridge)(nil)
	_ fsbridge.Remover          = (*Bridge)(nil)
	_ fsbridge.Renamer          = (*Bridge)(nil)
	_ fsbridge.Copier           = (*Bridge)(nil)
	_ fsbridge.LinkReader       = (*Bridge)(nil)
	_ fsbridge.Symlinker        = (*Bridge)(nil)
	_ fsbridge.Chmoder          = (*Bridge)(nil)
	_ fsbridge.DirReader        = (*Bridge)(nil)
	_ fsbridge.DirStreamer      = (*Bridge)(nil)
	_ fsbridge.Walker           = (*Bridge)(nil)
	_ fsbridge.Hasher           = (*Bridge)(nil)
	_ fsbridge.Globber          = (*Bridge)(nil)
	_ fsbridge.Watcher          = (*Bridge)(nil)
	_ fsbridge.Mounter          = (*Bridge)(nil)
)

// New makes a bridge over conn, which stays the caller's: closing it ends every
// bridge over it.
func New(conn *client.Conn, opts Options) *Bridge {
	if opts.ReadLimit <= 0 {
		opts.ReadLimit = fsbridge.DefaultReadLimit
	}
	if opts.EntryLimit <= 0 {
		opts.EntryLimit = DefaultEntryLimit
	}
	b := &Bridge{conn: conn, opts: opts, has: make(map[fsbridge.Capability]bool), mounts: opts.Mounts}
	for _, c := range conn.Hello().Capabilities {
		b.has[c] = true
	}
	if b.mounts == nil {
		b.mounts = conn.Hello().Mounts
	}
	b.has[fsbridge.CapMounts] = b.mounts != nil
	return b
}

// Guarded returns a bridge over the same connection with a further guard: both
// must hold.
func (b *Bridge) Guarded(assert fsbridge.AssertFunc) *Bridge {
	g := *b
	if first := b.opts.Assert; first != nil && assert != nil {
		g.opts.Assert = func() error {
			if err := first(); err != nil {
				return err
			}
			return assert()
		}
	} else if assert != nil {
		g.opts.Assert = assert
	}
	return &g
}

// Declares reports what the server declared in its greeting.
func (b *Bridge) Declares(c fsbridge.Capability) bool { return b.has[c] }

// Mounts returns the mount table.
func (b *Bridge) Mounts() fsbridge.MountTable {
	return append(fsbridge.MountTable(nil), b.mounts...)
}

// request is one call about a path.
type request struct {
	b    *Bridge
	ctx  context.Context //nolint:containedctx // a request lives as long as its call
	op   wire.Op
	path string
	also string // the other path of a rename or copy
}

// begin looks at what can be refused without asking anybody. Keeps FSB-09.
func (b *Bridge) begin(ctx context.Context, op wire.Op, paths ...string) (*request, error) {
	r := &request{b: b, ctx: ctx, op: op, path: paths[0]}
	for i, p := range paths {
		if i > 0 {
			r.also = p
		}
		if err := fsbridge.ValidPath(p); err != nil {
			return nil, &fsbridge.PathError{Op: op.String(), Path: p, Err: err}
		}
	}
	if c := op.Capability(); c != "" && !b.has[c] {
		return nil, &fsbridge.PathError{
			Op: op.String(), Path: r.path, Err: &fsbridge.UnsupportedError{Capability: c},
			Hint: "this helper's bridge does not offer it, see docs/capabilities.md",
		}
	}
	return r, nil
}

// permit is the look at ctx, guard and revocation that comes before each command.
// Keeps FSB-10 and FSB-12.
func (r *request) permit() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if assert := r.b.opts.Assert; assert != nil {
		if err := assert(); err != nil {
			return &notCurrentError{err}
		}
	}
	if revoked := r.b.opts.Revoked; revoked != nil && r.op.Mutates() {
		if err := revoked(); err != nil {
			return &notCurrentError{err}
		}
	}
	return nil
}

// do makes a call that is answered with one frame, and decodes that.
func (r *request) do(f *wire.Frame, decode func(d *wire.Decoder)) error {
	if err := r.permit(); err != nil {
		f.Release()
		return r.refuse(err)
	}
	f, err := r.b.conn.Do(r.ctx, f)
	if err != nil {
		return r.fail(err)
	}
	defer f.Release()
	return r.decode(f.Payload(), decode)
}

// decode decodes an answer. One that cannot be true ends the connection.
func (r *request) decode(payload []byte, decode func(d *wire.Decoder)) error {
	d := wire.NewDecoder(payload)
	if decode != nil {
		decode(d)
	}
	if err := d.Finish(); err != nil {
		return r.violated(err)
	}
	return nil
}

// violated ends the connection because of an answer that cannot be true.
func (r *request) violated(err error) error {
	return r.fail(&client.LostError{Sent: true, Err: r.b.conn.Violated(err)})
}

// start begins a call that goes on.
func (r *request) start(f *wire.Frame, shape client.Shape) (*client.Call, error) {
	if err := r.permit(); err != nil {
		f.Release()
		return nil, r.refuse(err)
	}
	call, err := r.b.conn.Start(r.ctx, f, shape)
	if err != nil {
		return nil, r.fail(err)
	}
	return call, nil
}
