package ssh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// DefaultWorkspace is the only workspace that is made when it is missing; no other one is.
const DefaultWorkspace = HomePrefix + "/workberth"

// How long parts of the start and of the end may take.
const (
	handshakeBound = 20 * time.Second // the helper's greeting
	endBound       = 20 * time.Second // ending what a generation has left
)

// start starts the helper of a new generation.
func (b *Backend) start(ctx context.Context, birth keeper.Birth) (*keeper.Life, error) {
	spec := birth.Resolved.Spec
	group, release, err := b.lines.acquire(lineOf(spec.Config))
	if err != nil {
		return nil, b.explain(err)
	}
	life, err := b.bring(ctx, group, birth)
	var silent *silentError
	if errors.As(err, &silent) && ctx.Err() == nil && !errors.Is(err, sshclient.ErrCut) {
		files, noFiles := b.bringFiles(ctx, group, birth)
		switch {
		case noFiles == nil:
			b.log.Info("the host runs no commands; files are reached over SFTP", "host", group.Settings().String())
			life, err = files, nil
		case !errors.Is(noFiles, sshclient.ErrNoSubsystem):
			err = noFiles
		}
	}
	if err != nil {
		release()
		return nil, b.explain(err)
	}
	life.Release = func(context.Context) error { release(); return nil }
	return life, nil
}

// bring brings a generation to life on a host that is connected to on demand.
func (b *Backend) bring(ctx context.Context, group *sshclient.Group, birth keeper.Birth) (*keeper.Life, error) {
	spec := birth.Resolved.Spec
	facts := map[string]string{"host": group.Settings().String(), "confinement": "none"}
	// What the last connection has left may still write.
	rec, _ := birth.Claim.Record()
	for _, tag := range rec.PendingSweep {
		if err := b.endSession(ctx, group, tag); err != nil {
			return nil, err
		}
	}
	seeded, err := b.seed(ctx, group, spec)
	if err != nil {
		return nil, err
	}
	maps.Copy(facts, seeded)

	whether := "exist"
	if spec.Workspace == DefaultWorkspace {
		whether = "make"
	}
	c, err := b.call(ctx, group, "serve", birth.Tag, spec.Workspace, whether)
	if err != nil {
		return nil, err
	}
	if c.word != "ready" || !path.IsAbs(c.workspace) || strings.ContainsFunc(c.workspace, unicode.IsControl) {
		c.session.Abort()
		return nil, b.noWorkspace(group, spec, c)
	}
	conn, err := client.New(ctx, stream{c}, client.Options{
		SkipLimit: -1, HandshakeTimeout: handshakeBound, Build: version.Version(), Logger: b.log,
	})
	if err != nil {
		c.session.Abort()
		return nil, b.noGreeting(c, err)
	}
	facts["arch"], facts["pid"] = c.arch, strconv.Itoa(conn.Hello().Pid)
	return &keeper.Life{
		Conn: conn, Runtime: &process{b: b, line: lineOf(spec.Config), group: group, session: c.session, tag: birth.Tag},
		Mounts:  fsbridge.MountTable{{Path: c.workspace, Kind: fsbridge.MountWorkspace}},
		Workdir: workdir(c.workspace, spec.Config.Workdir), Facts: facts, Env: environment(c.env),
		Limits: proc.Limits{OpenFiles: uint64(spec.Config.Limits.OpenFiles), FileSize: uint64(spec.Config.Limits.FileSizeBytes)},
		Fresh:  seeded != nil,
	}, nil
}

// workdir is where commands run by default.
func workdir(workspace, dir string) string {
	switch {
	case dir == "":
		return workspace
	case path.IsAbs(dir):
		return dir
	}
	return workspace + "/" + dir
}

// environment is what the environment of commands starts from: where things are and how
// text is written on the host, as the account's login has it.
func environment(lines []string) sandbox.Env {
	env := sandbox.Env{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
	for _, kv := range lines {
		name, value, ok := strings.Cut(kv, "=")
		switch name {
		case "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSH_CONNECTION":
			if ok {
				env[name] = value
			}
		}
	}
	return env
}

// noWorkspace explains an answer that is not "ready".
func (b *Backend) noWorkspace(g *sshclient.Group, spec sandbox.Spec, c *call) error {
	p := &sandbox.Problem{
		Field: "workspace", What: fmt.Sprintf("workspace %.300q on %s", c.rest, g.Settings()), Err: sandbox.ErrRefused,
	}
	switch c.word {
	case "absent":
		p.Rule = "there is no such directory"
		p.Remedy = "make it there, or fill a new one from a local directory with --seed"
	case "closed":
		p.Rule = "the account may not enter it"
		p.Remedy = "name a directory that belongs to the account"
	default:
		p.What, p.Rule = fmt.Sprintf("workspace %q on %s", spec.Workspace, g.Settings()), fmt.Sprintf("the host's shell answers %.300q", c.word)
		p.Err = sandbox.ErrUnavailable
	}
	return p
}

// noGreeting explains a helper that did not greet.
func (b *Backend) noGreeting(c *call, err error) error {
	var v *client.VersionError
	if errors.As(err, &v) {
		return &sandbox.Problem{
			What: "the guest helper does not fit this program", Rule: v.Error(),
			Remedy: "install both from the same release", Err: errors.Join(sandbox.ErrUnavailable, err),
		}
	}
	<-c.session.Done()
	if said := c.session.Stderr(); said != "" {
		err = fmt.Errorf("%w; its last message: %q", err, said)
	}
	return &sandbox.Problem{
		What: "the guest helper does not answer", Rule: err.Error(),
		Remedy: "see: berth doctor", Err: errors.Join(sandbox.ErrUnavailable, err),
	}
}

// explain makes a failure one that tells what to do.
func (b *Backend) explain(err error) error {
	var (
		known  *sandbox.Problem
		dest   *sshclient.DestinationError
		conf   *sshclient.ConfigError
		dial   *sshclient.DialError
		silent *silentError
		place  *placeError
		alien  *alienError
	)
	unavailable := func(what, remedy string) error {
		return &sandbox.Problem{What: what, Rule: err.Error(), Remedy: remedy, Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)}
	}
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &dest):
		return &sandbox.Problem{Field: "ssh", What: "the host", Rule: err.Error(), Remedy: "write it as USER@HOST:PORT", Err: fmt.Errorf("%w: %w", sandbox.ErrRefused, err)}
	case errors.As(err, &conf):
		return unavailable("the SSH configuration", "mend the file, or name another one with --ssh-config")
	case errors.As(err, &dial):
		return unavailable("the connection", dial.Remedy)
	case errors.As(err, &silent):
		return unavailable("the host", "see that the account may run commands: ssh HOST /bin/sh")
	case errors.As(err, &place):
		return unavailable("the guest helper", "make one of these directories usable, or set XDG_CACHE_HOME for the account")
	case errors.As(err, &alien):
		return unavailable("the host", "use a Linux host, and a release of berth that has the helper for its architecture")
	}
	return err
}
