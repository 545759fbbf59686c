package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// maxRequests is how many requests for one file may be under way.
const maxRequests = 64

// bringFiles makes a generation on a host that runs no commands but offers SFTP. Its files
// are served by what SFTP can do safely, in this process; commands are refused.
func (b *Backend) bringFiles(ctx context.Context, group *sshclient.Group, birth keeper.Birth) (*keeper.Life, error) {
	spec := birth.Resolved.Spec
	session, err := group.Session(ctx)
	if err != nil {
		return nil, err
	}
	// The client knows no context: a server that falls silent loses its session.
	ctx, cancel := context.WithTimeoutCause(ctx, answerBound, fmt.Errorf("nothing came within %v", answerBound))
	defer cancel()
	stop := context.AfterFunc(ctx, session.Abort)
	defer stop()
	files, err := openSFTP(ctx, session)
	if err != nil {
		session.Abort()
		return nil, err
	}
	life, err := b.serveFiles(ctx, group, session, files, birth)
	if err != nil {
		session.Abort()
		return nil, err
	}
	life.Facts = map[string]string{"host": group.Settings().String(), "confinement": "none", "commands": "none: the host serves SFTP only"}
	life.Workdir = workdir(life.Mounts[0].Path, spec.Config.Workdir)
	return life, nil
}

// openSFTP starts the subsystem.
func openSFTP(ctx context.Context, session *sshclient.Session) (*sftp.Client, error) {
	if err := session.Subsystem(ctx, "sftp"); err != nil {
		return nil, err
	}
	return sftp.NewClientPipe(session, session,
		sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(maxRequests))
}

// serveFiles puts a helper of this process before the SFTP client, so that files are
// reached as on any other host.
func (b *Backend) serveFiles(ctx context.Context, group *sshclient.Group, session *sshclient.Session, files *sftp.Client, birth keeper.Birth) (*keeper.Life, error) {
	spec := birth.Resolved.Spec
	if spec.Config.Seed != "" || spec.Config.SetupCommand != "" {
		return nil, &sandbox.Problem{
			Field: "ssh", What: "a seed or a setup command", Rule: fmt.Sprintf("%s serves SFTP only and runs nothing", group.Settings()),
			Remedy: "leave it out, and copy files with: berth fs", Err: sandbox.ErrRefused,
		}
	}
	ws, err := findWorkspace(files, spec.Workspace)
	if err != nil {
		return nil, &sandbox.Problem{
			Field: "workspace", What: fmt.Sprintf("workspace %q on %s", spec.Workspace, group.Settings()), Rule: err.Error(),
			Remedy: "name a directory of the host that the account may enter", Err: errors.Join(sandbox.ErrRefused, err),
		}
	}
	mounts := fsbridge.MountTable{{Path: ws, Kind: fsbridge.MountWorkspace}}
	bridge, err := sftpfs.New(files, sftpfs.Options{Mounts: mounts})
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	serving, end := context.WithCancel(context.Background())
	f := &filesOnly{session: session, end: end, served: make(chan struct{})}
	go func() {
		defer close(f.served)
		f.err = server.Serve(serving, theirs, server.Config{
			Files: bridge, Runner: noCommands{host: group.Settings().String()}, Build: version.Version(), Tag: birth.Tag, Logger: b.log,
		})
	}()
	go func() {
		select {
		case <-session.Done(): // with it goes what reads and writes
			end()
		case <-f.served:
		}
	}()
	conn, err := client.New(ctx, ours, client.Options{SkipLimit: -1, Build: version.Version(), Logger: b.log})
	if err != nil {
		return nil, errors.Join(err, f.Kill(ctx), f.err)
	}
	return &keeper.Life{Conn: conn, Runtime: f, Mounts: mounts}, nil
}

// findWorkspace returns the workspace without links.
func findWorkspace(files *sftp.Client, ws string) (string, error) {
	if rest, ok := strings.CutPrefix(ws, HomePrefix); ok && (rest == "" || rest[0] == '/') {
		home, err := files.RealPath(".")
		if err != nil {
			return "", err
		}
		full := path.Join(home, rest)
		if ws == DefaultWorkspace {
			_ = files.MkdirAll(full) // the look that follows tells whether it is there
		}
		ws = full
	}
	info, err := files.Stat(ws)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errors.New("it is not a directory")
	}
	return files.RealPath(ws)
}

var _ keeper.Runtime = (*filesOnly)(nil)

// filesOnly is the runtime of a generation without commands.
type filesOnly struct {
	session *sshclient.Session
	end     context.CancelFunc
	served  chan struct{} // closed when nothing is served any more; err is set
	err     error
}

// Done is closed when the files can no longer be reached.
func (f *filesOnly) Done() <-chan struct{} { return f.served }

// Kill ends the session.
func (f *filesOnly) Kill(ctx context.Context) error {
	f.session.Abort()
	f.end()
	select {
	case <-f.served:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TerminateAfter has nothing to end.
func (*filesOnly) TerminateAfter(context.Context, string, time.Duration) (sandbox.TerminateResult, error) {
	return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
}

// Clean is always true: nothing on the host looks for what was left.
func (*filesOnly) Clean() bool { return true }

// Diagnose says why files can no longer be reached.
func (f *filesOnly) Diagnose() string {
	if err, _ := f.session.Ended(); err != nil {
		return "the SFTP session ended: " + err.Error()
	}
	return "the SFTP session ended"
}

// noCommands refuses commands.
type noCommands struct{ host string }

// errNoCommands matches errors.ErrUnsupported.
var errNoCommands = fmt.Errorf("the host serves SFTP only and runs no commands: %w", errors.ErrUnsupported)

func (n noCommands) Start(_ context.Context, spec proc.Spec, _ proc.IO) (proc.Process, error) {
	what := n.host
	if len(spec.Argv) > 0 {
		what = spec.Argv[0] + " on " + n.host
	}
	return nil, &proc.StartError{Reason: proc.Internal, What: what, Err: errNoCommands}
}

func (noCommands) Terminate(context.Context, string, time.Duration) (proc.TerminateResult, error) {
	return proc.TerminateResult{Outcome: proc.Gone}, nil
}
