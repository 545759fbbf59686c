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

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/sandbox"
)

// insider is an oracle that works through a process inside, not through the bridge.
type insider struct {
	mu     sync.Mutex
	in     *json.Encoder
	out    *json.Decoder
	frozen map[string]answers // once the place is gone: what it looked like
}

// answers are what can be asked about one file.
type answers struct{ look, names, read answer }

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
	if i.frozen != nil {
		was, ok := i.frozen[path.Clean(string(o.Path))]
		switch {
		case o.Op == "remove":
			return a, nil
		case !ok:
			return a, &os.PathError{Op: o.Op, Path: string(o.Path), Err: syscall.ENOENT}
		case o.Op == "look":
			return was.look, nil
		case o.Op == "names":
			return was.names, nil
		case o.Op == "read":
			return was.read, nil
		}
		return a, errors.ErrUnsupported
	}
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

// freeze remembers the tree at dir, and answers from memory from then on.
func (i *insider) freeze(dir string) {
	tree := map[string]answers{}
	var walk func(p string)
	walk = func(p string) {
		var a answers
		var err error
		if a.look, err = i.ask(order{Op: "look", Path: []byte(p)}); err != nil {
			return
		}
		switch fsbridge.FileType(a.look.Type) {
		case fsbridge.TypeDir:
			a.names, _ = i.ask(order{Op: "names", Path: []byte(p)})
		case fsbridge.TypeRegular:
			a.read, _ = i.ask(order{Op: "read", Path: []byte(p)})
		}
		tree[p] = a
		for _, name := range a.names.Names {
			walk(path.Join(p, string(name)))
		}
	}
	walk(dir)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.frozen = tree
}
