package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// order is one line that oracle reads, answer one that it writes. Paths and texts are bytes.
type order struct {
	Op   string
	Path []byte
	To   []byte // the new name, the target of a link
	Type string
	Mode uint32
	Data []byte
	Size int64
	Time time.Time
}

type answer struct {
	Err   string // "", or the name of an errno
	Type  string
	Mode  uint32
	Size  int64
	To    []byte
	Time  time.Time
	Inode uint64
	Nlink uint64
	Names [][]byte
	Data  []byte
}

// oracle makes and looks at files as standard input says, one JSON value per line, until it
// ends. It lets a suite see the files inside without the bridge it tests.
func oracle([]string) error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	unix.Umask(0)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		a := answer{}
		if err := obey(o, &a); err != nil {
			a.Err = errno(err)
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

func obey(o order, a *answer) error {
	path := string(o.Path)
	switch o.Op {
	case "make":
		return makeFile(o, path)
	case "look":
		return look(path, a)
	case "names":
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			a.Names = append(a.Names, []byte(e.Name()))
		}
		return err
	case "read":
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		a.Data, err = io.ReadAll(f)
		return err
	case "rename":
		return os.Rename(path, string(o.To))
	case "remove":
		return os.RemoveAll(path)
	}
	return unix.EINVAL
}

func look(path string, a *answer) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	a.Mode, a.Size, a.Inode, a.Nlink = st.Mode&0o7777, st.Size, st.Ino, st.Nlink
	a.Time = time.Unix(st.Mtim.Unix())
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		a.Type = "file"
	case unix.S_IFDIR:
		a.Type = "dir"
	case unix.S_IFLNK:
		a.Type = "symlink"
		to, err := os.Readlink(path)
		a.To = []byte(to)
		return err
	case unix.S_IFIFO:
		a.Type = "fifo"
	case unix.S_IFSOCK:
		a.Type = "socket"
	case unix.S_IFCHR:
		a.Type = "char"
	case unix.S_IFBLK:
		a.Type = "block"
	}
	return nil
}

func makeFile(o order, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var err error
	switch o.Type {
	case "hardlink":
		return os.Link(string(o.To), path)
	case "symlink":
		return os.Symlink(string(o.To), path)
	case "dir":
		if err = os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			err = nil
		}
	case "file":
		if err = os.WriteFile(path, o.Data, 0o644); err == nil && o.Size > int64(len(o.Data)) {
			err = os.Truncate(path, o.Size)
		}
	case "fifo":
		err = unix.Mkfifo(path, 0o644)
	case "socket":
		err = makeSocket(path)
	default:
		return unix.ENOTSUP
	}
	if err == nil {
		err = unix.Chmod(path, o.Mode)
	}
	if err == nil && !o.Time.IsZero() {
		err = os.Chtimes(path, o.Time, o.Time)
	}
	return err
}

// makeSocket leaves a socket behind that nobody listens on.
func makeSocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}
