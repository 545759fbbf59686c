package containertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
)

// away is what a test has of an engine on another machine.
type away struct {
	*kit
	server *sshtest.Server
	env    func(string) string
	far    string // the engine's address
}

// CasesElsewhere tests what is special about an engine on another machine. C051
func (s Subject) CasesElsewhere(t *testing.T) {
	for name, run := range map[string]func(*away){
		"copy": caseCopy, "canonical": caseCanonical, "refused": caseAwayRefused, "hidden": caseAwayHidden,
		"half": caseHalfCopy, "cut": caseCut, "stream": caseStream,
	} {
		t.Run(name, func(t *testing.T) {
			s.away(t, "", strings.TrimPrefix(s.Address(t), "unix://"), run)
		})
	}
}

// BehindWrapper tests an engine of another machine on which a wrapper runs in place of each command, by
// an address with the path of a socket, or with none. C051
func (s Subject) BehindWrapper(t *testing.T, wrapper, socket string) {
	s.away(t, wrapper, socket, func(a *away) {
		a.must(os.WriteFile(filepath.Join(a.ws, "f"), []byte("there"), 0o644))
		sb := a.ensure(a.b)
		a.wantOutput(sb, "cat f", "there")
		a.remove(sb)
	})
}

// away runs a test with the engine on another machine.
func (s Subject) away(t *testing.T, wrapper, socket string, run func(*away)) {
	t.Helper()
	s.Address(t)
	dir, server := sshProgram(t, wrapper)
	s.run(t, func(k *kit) {
		a := &away{kit: k, server: server, env: sshEnv(dir), far: "ssh://" + elsewhereHost + socket}
		k.b = a.openAway("state")
		run(a)
	})
}

// openAway opens the backend for the engine on another machine.
func (a *away) openAway(state string) Backend {
	a.Helper()
	b, err := a.s.Open(a.far, Options{StateDir: filepath.Join(a.dir, state), Logger: a.logger(), Getenv: a.env})
	a.must(err)
	a.Cleanup(func() { _ = b.Close() })
	return b
}

// volumes are the names of the volumes of sandboxes of this test.
func (a *away) volumes() []string {
	a.Helper()
	all, err := a.engine.Volumes(a.ctx, nil)
	a.must(err)
	var names []string
	for _, v := range all {
		if strings.HasPrefix(v.Labels["io.workberth.workspace"], a.dir) {
			names = append(names, v.Name)
		}
	}
	return names
}

// remove removes a sandbox, of which nothing may be left on the engine.
func (a *away) remove(sb sandbox.Sandbox) {
	a.Helper()
	a.must(errors.Join(sb.Close(), a.b.Remove(a.ctx, sb.Info().ID)))
	if left := a.volumes(); len(left) > 0 {
		a.Errorf("volumes are left: %q", left)
	}
	if left := a.containers(); len(left) > 0 {
		a.Errorf("containers are left: %+v", left)
	}
}

// caseCopy: what the copy has: files, links, modes, odd names, several names of one file, all of it the
// sandbox's own; and what it has not.
func caseCopy(a *away) {
	at := func(name string) string { return filepath.Join(a.ws, name) }
	a.must(errors.Join(
		os.Chmod(a.ws, 0o750), os.MkdirAll(at("d/e"), 0o750), os.WriteFile(at("d/program"), []byte("#!/bin/sh\necho runs\n"), 0o750), os.WriteFile(at("d/secret"), []byte("s"), 0o600),
		os.Symlink("../d/program", at("d/link")), os.Symlink("nowhere", at("dangling")), os.Link(at("d/secret"), at("second")),
		os.WriteFile(at("new\nline \"é\""), []byte("odd"), 0o644), os.WriteFile(at("not\xfftext"), []byte("bytes"), 0o644), os.WriteFile(at("empty"), nil, 0o644),
		os.Symlink("/etc/shadow", at("absolute")), os.Symlink("../../outside", at("d/up")), unix.Mkfifo(at("fifo"), 0o600),
		os.WriteFile(at("setuid"), nil, 0o755), os.Chmod(at("setuid"), 0o755|os.ModeSetuid), os.WriteFile(at("big"), make([]byte, 3<<20+1), 0o644),
	))
	const owner = 4242
	if os.Geteuid() == 0 {
		a.must(os.Chown(a.ws, owner, owner))
	}
	sb := a.ensure(a.b)
	for script, want := range map[string]string{
		"d/program": "runs", "d/link": "runs", "cat second": "s", "ls -l d/link | grep -c -e '-> ../d/program'": "1", "test -L dangling && echo yes": "yes",
		"cat new*": "odd", "cat not*": "bytes", "wc -c <big": "3145729", "ls -l d/secret | grep -c '^-rw-------    2'": "1",
		"ls -l d/program setuid | grep -c -e '^-rwxr-x---' -e '^-rwxr-xr-x'": "2", "ls -ld d . | grep -c '^drwxr-x---'": "2",
		"ls -d absolute d/up fifo 2>/dev/null": "", "test -O . && test -O d/program && test -O /workspace/d/e && echo mine": "mine",
	} {
		a.wantOutput(sb, script, want)
	}
	a.wantOutput(sb, "echo new >d/e/f && echo more >>d/secret && cat second", "smore")
	info := sb.Info()
	for _, name := range []string{"absolute", "d/up", "fifo"} {
		if !strings.Contains(info.Runtime["leftOut"], name) {
			a.Errorf("left out: %q, without %s", info.Runtime["leftOut"], name)
		}
	}
	if text := info.Runtime["copy"]; !strings.Contains(text, a.ws) || !strings.Contains(text, "recreate") {
		a.Errorf("copy: %q", text)
	}
	if m, _ := info.Mounts.Workspace(); m.HostPath != "" {
		a.Errorf("the copy claims to lie at %s", m.HostPath)
	}
	if got := a.read(at("d/secret")); got != "s" {
		a.Errorf("the local file is %q", got)
	}
	a.remove(sb)
}

// caseCanonical: once filled, the volume is the workspace: over stops, another process, and the loss of
// the container. Only a removal begins anew.
func caseCanonical(a *away) {
	file := filepath.Join(a.ws, "f")
	a.must(os.WriteFile(file, []byte("one"), 0o644))
	sb := a.ensure(a.b)
	a.wantOutput(sb, "cat f; echo work >g", "one")
	a.must(os.WriteFile(file, []byte("two"), 0o644))
	a.must(sb.Close())
	sb = a.ensure(a.b)
	a.wantOutput(sb, "cat f g", "onework")
	a.must(errors.Join(sb.Close(), a.engine.Remove(a.ctx, a.containerOf(sb).ID)))
	a.b = a.openAway("state")
	sb = a.ensure(a.b)
	a.wantOutput(sb, "cat f g", "onework")
	a.remove(sb)
	sb = a.ensure(a.b)
	a.wantOutput(sb, "cat f; ls", "twof")
	a.remove(sb)
}

// caseAwayRefused: directories of this machine are not bound there, whatever is called the same there.
func caseAwayRefused(a *away) {
	_, err := a.b.Ensure(a.ctx, a.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: a.ws, Target: "/data", ReadOnly: true}} }))
	a.refused(err, sandbox.ErrRefused, "binds", a.ws, "another machine")
	if a.b.Features().Binds {
		a.Error("binds are declared")
	}
	if left := a.volumes(); len(left) > 0 {
		a.Errorf("left behind: %q", left)
	}
}

// caseAwayHidden: without access there is an empty volume of the user's own, and with ro one that cannot
// be changed.
func caseAwayHidden(a *away) {
	a.must(os.WriteFile(filepath.Join(a.ws, "f"), []byte("one"), 0o644))
	sb := a.ensure(a.b, func(c *sandbox.Config) { c.Access = sandbox.AccessNone })
	a.wantOutput(sb, "ls; echo x >f; cat f", "x")
	a.remove(sb)
	sb = a.ensure(a.b, func(c *sandbox.Config) { c.Access = sandbox.AccessReadOnly })
	a.wantOutput(sb, "cat f; echo x 2>/dev/null >f || echo no", "oneno")
	a.remove(sb)
}

// caseHalfCopy: a copy that was given up halfway is never used, and one of which nothing tells whether it
// is complete is not thrown away.
func caseHalfCopy(a *away) {
	big := filepath.Join(a.ws, "a-big")
	a.must(errors.Join(os.WriteFile(filepath.Join(a.ws, "z"), []byte("last"), 0o644), os.WriteFile(big, nil, 0o644), os.Truncate(big, 32<<20)))
	name := a.halfVolume()
	if got := a.volumes(); len(got) != 1 || got[0] != name {
		a.Fatalf("volumes %q, want %s", got, name)
	}
	sb := a.ensure(a.b)
	a.wantOutput(sb, "cat z; ls", "lasta-big\nz")
	a.must(sb.Close())
	// Container and record are lost.
	a.must(a.engine.Remove(a.ctx, a.containerOf(sb).ID))
	a.must(os.RemoveAll(filepath.Join(a.dir, "state", "sandboxes", string(sb.Info().ID))))
	_, err := a.b.Ensure(a.ctx, a.spec())
	a.refused(err, sandbox.ErrUnavailable, name, "recreate")
	if len(a.volumes()) != 1 {
		a.Error("the volume is gone")
	}
	a.must(a.b.Remove(a.ctx, sb.Info().ID))
	sb = a.ensure(a.b)
	a.wantOutput(sb, "cat z", "last")
	a.remove(sb)
}

// halfVolume leaves what a process leaves that was killed while it copied, and gives the volume's name.
func (a *away) halfVolume() string {
	a.Helper()
	// One that is complete tells names and labels.
	sb := a.ensure(a.b)
	name, id := sb.Info().Runtime["volume"], sb.Info().ID
	v, err := a.engine.Volume(a.ctx, name)
	a.must(err)
	a.must(errors.Join(sb.Close(), a.b.Remove(a.ctx, id)))
	dir := filepath.Join(a.dir, "state", "sandboxes", string(id))
	a.must(errors.Join(a.engine.CreateVolume(a.ctx, name, v.Labels), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "filling"), nil, 0o600)))
	return name
}

// caseStream: the connection is the first process's input and output, and no command gets at it, neither as
// root nor as an ordinary user.
func caseStream(a *away) {
	for _, owner := range []int{os.Geteuid(), 4242} {
		if os.Geteuid() == 0 {
			a.must(os.Chown(a.ws, owner, owner))
		}
		sb := a.ensure(a.b)
		a.wantOutput(sb, `for n in 0 1 2 3 4 5 6 7 8 9; do for p in 1 $PPID; do
			(echo junk >/proc/$p/fd/$n) 2>/dev/null && echo wrote to $p $n; (test -e /proc/$p/fd/$n && exec 2>/dev/null </proc/$p/fd/$n && echo read from $p $n)
		done; done; test /proc/1/exe -ef /run/berth/berth-guest || grep -c berth-guest /proc/1/cmdline`, "1")
		a.wantOutput(sb, "echo on", "on")
		a.remove(sb)
	}
}

// caseCut: when the connection to the other machine is cut, nothing goes on there, what ran is unknown, a
// write under way too, and the next use goes on with the same files.
func caseCut(a *away) {
	if a.server == nil {
		a.Skip("the server is another process's")
	}
	a.must(os.WriteFile(filepath.Join(a.ws, "f"), []byte("old"), 0o644))
	sb := a.ensure(a.b)
	s := a.start(sb, "echo begun >g; while :; do sleep 1; done")
	br, err := sb.Bridge(a.ctx, nil)
	a.must(err)
	content := newHalf(3 << 20)
	written := make(chan error, 1)
	go func() {
		_, err := fsbridge.WriteStream(a.ctx, br, "f", content, fsbridge.WriteOptions{})
		written <- err
	}()
	<-content.given
	id := a.containerOf(sb).ID
	a.server.CutConnections()
	reason := a.ended(sb)
	close(content.proceed)
	if err := <-written; err == nil {
		a.Errorf("the write has succeeded (%s)", reason)
	}
	status, err := s.Wait(a.ctx)
	if err == nil && !status.Unknown {
		a.Errorf("the command: %+v", status)
	}
	a.within(30*time.Second, "the end of the container", func() {
		_, err := a.engine.Wait(a.ctx, id)
		a.must(err)
	})
	sb = a.ensure(a.b)
	a.wantOutput(sb, "cat f g", "oldbegun")
	a.remove(sb)
}
