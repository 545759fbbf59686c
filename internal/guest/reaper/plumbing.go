//go:build linux

package reaper

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// plumbing is the standard streams of one command: this process's ends, and those
// that go to the reaper.
type plumbing struct {
	terminal *os.File // the helper's end of it, or nil
	stdin    *os.File // where to write the command's input, or nil
	outputs  []*output

	theirs []int // standard input, output, error; closed once sent
}

// newPlumbing makes the streams a specification asks for.
func newPlumbing(spec proc.Spec, streams proc.IO) (*plumbing, error) {
	p := &plumbing{}
	var err error
	if spec.TTY != nil {
		err = p.addTerminal(spec, streams)
	} else {
		err = p.addPipes(spec, streams)
	}
	if err != nil {
		p.closeTheirs()
		p.closeOurs()
		reason := proc.Internal
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOSPC) {
			reason = proc.LimitReached
		}
		return nil, &proc.StartError{Reason: reason, What: spec.Argv[0], Err: err}
	}
	return p, nil
}

func (p *plumbing) addTerminal(spec proc.Spec, streams proc.IO) error {
	master, slave, err := openPTY(*spec.TTY)
	if err != nil {
		return err
	}
	p.terminal = master
	p.stdin = master
	p.theirs = []int{slave, slave, slave}
	p.outputs = []*output{newOutput(master, true, spec.KeepDescendants, streams.Stdout)}
	return nil
}

func (p *plumbing) addPipes(spec proc.Spec, streams proc.IO) error {
	if spec.Stdin {
		fds, err := pipe(1)
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, fds[0])
		p.stdin = os.NewFile(uintptr(fds[1]), "standard input")
	} else {
		null, err := openNull(unix.O_RDONLY)
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, null)
	}
	for _, w := range []struct {
		name string
		out  *output
	}{
		{"standard output", newOutput(nil, false, spec.KeepDescendants, streams.Stdout)},
		{"standard error", newOutput(nil, false, spec.KeepDescendants, streams.Stderr)},
	} {
		fds, err := pipe(0)
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, fds[1])
		w.out.f = os.NewFile(uintptr(fds[0]), w.name)
		p.outputs = append(p.outputs, w.out)
	}
	return nil
}

// pipe makes a pipe whose end ours does not block. The other one goes to a
// program, which expects that it does.
func pipe(ours int) (fds [2]int, err error) {
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return fds, err
	}
	if err := unix.SetNonblock(fds[ours], true); err != nil {
		closeFDs(fds[:])
		return fds, err
	}
	return fds, nil
}

// closeTheirs closes what has been sent, or never will be.
func (p *plumbing) closeTheirs() {
	for i, fd := range p.theirs {
		if i == 0 || fd != p.theirs[i-1] { // a terminal is one descriptor three times
			_ = unix.Close(fd)
		}
	}
	p.theirs = nil
}

// closeOurs closes everything on this side.
func (p *plumbing) closeOurs() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	for _, o := range p.outputs {
		o.close()
	}
}

// files are the descriptors of a startOrder. They stay valid as long as dir and p
// are not closed.
func (p *plumbing) files(dir *os.File, keep bool) ([]int, error) {
	fd, err := descriptor(dir)
	if err != nil {
		return nil, err
	}
	list := append([]int{fd}, p.theirs...)
	if keep {
		for _, o := range p.outputs {
			fd, err := descriptor(o.f)
			if err != nil {
				return nil, err
			}
			list = append(list, fd)
		}
	}
	return list, nil
}

// descriptor returns a file's descriptor and leaves the file as it is.
func descriptor(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	err = raw.Control(func(p uintptr) { fd = int(p) })
	return fd, err
}
