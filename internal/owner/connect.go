package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// attempts bounds how often Connect starts over when it meets an owner that is
// just ending.
const attempts = 5

// errNotServing: no owner listens, or it ends just now.
var errNotServing = errors.New("no owner process serves this sandbox")

// Handle is a connection to the owner of one sandbox. Safe for concurrent use.
type Handle struct {
	conn   *client.Conn
	bridge fsbridge.Bridge
}

// Connect returns a connection to the owner of the sandbox that req names; where
// there is none, it starts one, and with it the sandbox. Errors of the backend
// come back as *sandbox.Problem.
func Connect(ctx context.Context, req Request, opts Options) (*Handle, error) {
	if err := privateDir(opts.RuntimeDir); err != nil {
		return nil, err
	}
	var last error
	for range attempts {
		h, err := dial(ctx, req.ID, opts)
		if !errors.Is(err, errNotServing) {
			return h, err
		}
		if err := start(ctx, req, opts); err != nil {
			return nil, err
		}
		if h, last = dial(ctx, req.ID, opts); !errors.Is(last, errNotServing) {
			return h, last
		}
	}
	return nil, &sandbox.Problem{
		What: "the owner of sandbox " + string(req.ID) + " ended again at once", Rule: last.Error(),
		Remedy: "look into " + opts.RuntimeDir + "/" + string(req.ID) + ".log", Err: sandbox.ErrUnavailable,
	}
}

// Dial connects to the owner of sandbox id and starts none: where there is none
// the error matches sandbox.ErrNotFound.
func Dial(ctx context.Context, id sandbox.ID, opts Options) (*Handle, error) {
	if err := privateDir(opts.RuntimeDir); err != nil {
		return nil, err
	}
	h, err := dial(ctx, id, opts)
	if errors.Is(err, errNotServing) {
		return nil, &sandbox.Problem{
			What: "sandbox " + string(id), Rule: "it is not running",
			Remedy: "start it with: berth exec; see all with: berth sandbox ls", Err: sandbox.ErrNotFound,
		}
	}
	return h, err
}

// start starts an owner unless another call has just done so.
func start(ctx context.Context, req Request, opts Options) error {
	lock, err := lockStart(ctx, opts.RuntimeDir, req.ID)
	if err != nil {
		return err
	}
	defer lock.release()
	if h, err := dial(ctx, req.ID, opts); !errors.Is(err, errNotServing) {
		if err != nil {
			return err
		}
		return h.Close()
	}
	begin := time.Now()
	if err := spawn(ctx, req, opts); err != nil {
		return err
	}
	discard(opts.Logger).Debug("started the owner process", "sandbox", req.ID, "took", time.Since(begin))
	return nil
}

// dial connects once.
func dial(ctx context.Context, id sandbox.ID, opts Options) (*Handle, error) {
	path, err := socketPath(opts.RuntimeDir, id)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return nil, errNotServing
	case err != nil:
		return nil, fmt.Errorf("connect to the owner process: %w", err)
	}
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("connect to the owner process: %s is no Unix socket", path)
	}
	if err := checkPeer(unixConn); err != nil {
		c.Close()
		return nil, err
	}
	conn, err := client.New(ctx, c, client.Options{Build: version.Version()})
	if err != nil {
		c.Close()
		var v *client.VersionError
		if errors.As(err, &v) {
			return nil, &sandbox.Problem{
				What: "the owner process of sandbox " + string(id), Rule: v.Error(),
				Remedy: "end it with: berth sandbox stop " + string(id), Err: sandbox.ErrUnavailable,
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			return nil, errNotServing // it was ending while we connected
		}
		var hs *client.HandshakeError
		if errors.As(err, &hs) && ctx.Err() == nil && hs.Said == "" {
			return nil, errNotServing
		}
		return nil, fmt.Errorf("connect to the owner process: %w", err)
	}
	return &Handle{conn: conn, bridge: guestfs.New(conn, guestfs.Options{})}, nil
}

// Bridge is the bridge over the sandbox's files.
func (h *Handle) Bridge() fsbridge.Bridge { return h.bridge }

// Runner starts foreground commands, which end with this connection.
func (h *Handle) Runner() proc.Runner { return h.conn.Runner() }

// Close gives the connection back; foreground commands started on it end.
func (h *Handle) Close() error { return h.conn.Close() }
