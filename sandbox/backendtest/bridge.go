package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/sandbox"
)

// outsideDir is a directory that commands inside can write and that lies in no mount that a
// bridge may change. It plays what lies beside the workspace.
const outsideDir = "/dev/shm"

// runBridgetest holds the bridges of the backend's sandboxes to package bridgetest. The attackers
// run inside.
func runBridgetest(t *testing.T, target *Target, prog string) {
	t.Helper()
	waive := map[string]string{}
	for name, reason := range target.Waive {
		if check, ok := strings.CutPrefix(name, "bridge/"); ok {
			waive[check] = reason
		}
	}
	bridgetest.Run(t, bridgetest.Target{
		Name: "backend-" + target.Name,
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			return newBridgeEnvironment(t, target, prog, o)
		},
		Waive: waive,
	})
}

// newBridgeEnvironment makes a sandbox over directories of this machine.
func newBridgeEnvironment(t testing.TB, target *Target, prog string, o bridgetest.Options) *bridgetest.Environment {
	t.Helper()
	if o.ReadLimit > 0 {
		t.Skip("the read limit of a sandbox's bridge is its own")
	}
	tt, ok := t.(*testing.T)
	if !ok {
		t.Skip("not a test")
	}
	k := &kit{T: tt, target: target, prog: prog, name: "bridge"}
	k.prepare()
	dirs := bridgetest.NewHostDirs(t, o)
	if o.ReadOnly && !k.features.Confined {
		t.Skip("where commands are not confined, the access is read-write")
	}
	spec := plainSpec(dirs.Workspace)
	if o.ReadOnly {
		spec.Config.Access = sandbox.AccessReadOnly
	}
	bind := ""
	if o.Bind {
		if !k.features.Binds || !k.features.Confined {
			t.Skip("the backend does not declare binds")
		}
		bind = "/bound"
		spec.Config.Binds = append(spec.Config.Binds, sandbox.Bind{Source: dirs.Bind, Target: bind})
	}
	x, err := k.tryEnsure(k.backend, spec)
	if err != nil {
		t.Fatalf("Ensure: %v", explain(err))
	}
	b, err := x.Bridge(k.ctx, o.Guard)
	if err != nil {
		t.Fatalf("Bridge: %v", err)
	}
	insider := x.insider()
	out := path.Join(outsideDir, k.word)
	t.Cleanup(func() { _ = insider.Remove(out) })
	host := bridgetest.HostOracle{x.root: dirs.Workspace}
	env := &bridgetest.Environment{
		Bridge: b, Oracle: &splitOracle{host: host, inside: insider},
		Workspace: x.root, Out: out, Bind: bind,
		Revoke: func() { x.Revoke("bridge check") },
		Sever:  func() { _ = k.backend.Stop(context.WithoutCancel(k.ctx), x.id) },
		Attack: x.attack,
	}
	if bind != "" {
		host[bind] = dirs.Bind
	}
	if o.Second {
		env.Second = path.Join(x.root, "m")
	}
	if target.Bridge != nil {
		target.Bridge(t, o, env)
	}
	return env
}

// attack swaps names from inside, as fast as a process there can.
func (x *box) attack(ctx context.Context, swaps []bridgetest.Swap) (int64, error) {
	args := []string{"swap"}
	for _, s := range swaps {
		args = append(args, s.A, s.B)
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer stop()
	res, err := sandbox.Run(context.WithoutCancel(ctx), x.Sandbox, x.role(args...), nil, sandbox.RunOptions{Stdin: r})
	_ = w.Close()
	if err != nil {
		return 0, err
	}
	var n int64
	if _, err := fmt.Sscanf(string(res.Stdout.Bytes()), "ready\n%d", &n); err != nil {
		return 0, fmt.Errorf("the attacker wrote %q and %q: %w", res.Stdout.Bytes(), res.Stderr.Bytes(), err)
	}
	return n, nil
}

// splitOracle asks this machine about its directories and a process inside about the rest.
type splitOracle struct {
	host   bridgetest.HostOracle
	inside *insider
}

var (
	_ bridgetest.Oracle     = (*splitOracle)(nil)
	_ bridgetest.HostPather = (*splitOracle)(nil)
)

func (s *splitOracle) HostPath(p string) (string, bool) { return s.host.HostPath(p) }

func (s *splitOracle) oracle(p string) bridgetest.Oracle {
	if _, ok := s.host.HostPath(p); ok {
		return s.host
	}
	return s.inside
}

func (s *splitOracle) Make(p string, n bridgetest.Node) error { return s.oracle(p).Make(p, n) }
func (s *splitOracle) Look(p string) (bridgetest.Node, error) { return s.oracle(p).Look(p) }
func (s *splitOracle) Names(p string) ([]string, error)       { return s.oracle(p).Names(p) }
func (s *splitOracle) Open(p string) (io.ReadCloser, error)   { return s.oracle(p).Open(p) }
func (s *splitOracle) Rename(oldPath, newPath string) error {
	return s.oracle(oldPath).Rename(oldPath, newPath)
}
func (s *splitOracle) Remove(p string) error { return s.oracle(p).Remove(p) }

// insider is an oracle that works through a process inside, not through the bridge.
type insider struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *json.Decoder
}

// order and answer are what the role "oracle" speaks.
type order struct {
	Op   string
	Path []byte
	To   []byte
	Type string
	Mode uint32
	Data []byte
	Size int64
}

type answer struct {
	Err   string
	Type  string
	Mode  uint32
	Size  int64
	To    []byte
	Inode uint64
	Nlink uint64
	Names [][]byte
	Data  []byte
}

// insider starts the process. It lives as long as the check.
func (x *box) insider() *insider {
	x.k.Helper()
	r, w := io.Pipe()
	inR, inW := io.Pipe()
	ctx, cancel := context.WithCancel(x.k.ctx)
	// A handle of its own: the check may revoke the other one.
	sb, err := x.k.tryEnsure(x.k.backend, x.spec)
	x.k.must(err)
	running, err := sandbox.Start(ctx, sb.Sandbox, sb.role("oracle"), nil, sandbox.IO{Stdin: inR, Stdout: w}, sandbox.StartOptions{})
	x.k.must(err)
	go func() {
		<-running.Done()
		_ = w.Close()
		_ = inR.Close() // who asks now must not wait for a reader
	}()
	x.k.Cleanup(func() {
		_ = inW.Close()
		_ = r.Close()
		cancel()
		<-running.Done()
	})
	return &insider{in: json.NewEncoder(inW), out: json.NewDecoder(r)}
}

func (i *insider) ask(o order) (answer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var a answer
	if err := i.in.Encode(o); err != nil {
		return a, err
	}
	if err := i.out.Decode(&a); err != nil {
		return a, err
	}
	if a.Err == "" {
		return a, nil
	}
	return a, &os.PathError{Op: o.Op, Path: string(o.Path), Err: errnoNamed(a.Err)}
}

// errnoNamed is the errno of a name; what an unprivileged process cannot do is unsupported.
func errnoNamed(name string) error {
	for e := syscall.Errno(1); e < 200; e++ {
		if unix.ErrnoName(e) == name {
			if e == syscall.EPERM || e == syscall.ENOTSUP || e == syscall.EROFS {
				return fmt.Errorf("%w (%w)", errors.ErrUnsupported, e)
			}
			return e
		}
	}
	return errors.New(name)
}

func (i *insider) Make(p string, n bridgetest.Node) error {
	o := order{Op: "make", Path: []byte(p), Type: string(n.Type), Mode: uint32(n.Mode), Data: n.Data, Size: n.Size, To: []byte(n.Target)}
	if o.Mode == 0 {
		o.Mode = 0o644
		if n.Type == fsbridge.TypeDir {
			o.Mode = 0o755
		}
	}
	if n.HardLink != "" {
		o.Type, o.To = "hardlink", []byte(n.HardLink)
	}
	_, err := i.ask(o)
	return err
}

func (i *insider) Look(p string) (bridgetest.Node, error) {
	a, err := i.ask(order{Op: "look", Path: []byte(p)})
	return bridgetest.Node{
		Type: fsbridge.FileType(a.Type), Mode: fsbridge.Mode(a.Mode), Size: a.Size, Target: string(a.To), Inode: a.Inode, Nlink: a.Nlink,
	}, err
}

func (i *insider) Names(p string) ([]string, error) {
	a, err := i.ask(order{Op: "names", Path: []byte(p)})
	var names []string
	for _, n := range a.Names {
		names = append(names, string(n))
	}
	return names, err
}

func (i *insider) Open(p string) (io.ReadCloser, error) {
	a, err := i.ask(order{Op: "read", Path: []byte(p)})
	if err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(string(a.Data))), nil
}

func (i *insider) Rename(oldPath, newPath string) error {
	_, err := i.ask(order{Op: "rename", Path: []byte(oldPath), To: []byte(newPath)})
	return err
}

func (i *insider) Remove(p string) error {
	_, err := i.ask(order{Op: "remove", Path: []byte(p)})
	return err
}
