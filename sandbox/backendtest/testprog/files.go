package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// errno is the short name of an error of the system, "ok" for none.
func errno(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// pwd writes the working directory as the kernel sees it.
func pwd([]string) error {
	dir, err := os.Readlink("/proc/self/cwd")
	if err != nil {
		dir, err = os.Getwd()
	}
	fmt.Print(dir)
	return err
}

// readFile PATH writes the content.
func readFile(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}

// writeFile PATH TEXT replaces the content.
func writeFile(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	content, err := text(args, 1)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o666)
}

// removeFile PATH removes a file.
func removeFile(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// list DIR writes the names as JSON.
func list(args []string) error {
	dir, err := text(args, 0)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return json.NewEncoder(os.Stdout).Encode(names)
}

// stat PATH writes mode, owner and size as JSON.
func stat(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"mode": int64(st.Mode), "uid": int64(st.Uid), "gid": int64(st.Gid), "size": st.Size,
	})
}

// fill PATH SIZE writes SIZE bytes, and then how many it could and why no more.
func fill(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	size, err := number(args, 1)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	written := 0
	for written < size && err == nil {
		var n int
		n, err = f.Write(block[:min(len(block), size-written)])
		written += n
	}
	fmt.Println(written, errno(errors.Join(err, f.Close())))
	return nil
}

// swap A B [A B ...] exchanges the names of each pair, as fast as it can, until standard input
// ends, and writes how often.
func swap(args []string) error {
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(end)
	}()
	if len(args) == 0 || len(args)%2 != 0 {
		return errors.New("names come in pairs")
	}
	fmt.Println("ready")
	for n, rounds := 0, 0; ; rounds++ {
		select {
		case <-end:
			if rounds%2 == 0 { // every name is where it was
				fmt.Println(n)
				return nil
			}
		default:
		}
		for i := 0; i < len(args); i += 2 {
			if unix.Renameat2(unix.AT_FDCWD, args[i], unix.AT_FDCWD, args[i+1], unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
	}
}

// probe OP PATH [OP PATH ...] tries each operation and writes what came of it as a JSON list: "ok" or
// the name of the error. Operations: read, list, write, mkdir, exec. What is tried must do no
// harm where it should have been refused: existing files are opened and not written, and what is
// made is removed again.
func probe(args []string) error {
	results := []string{}
	for i := 0; i+1 < len(args); i += 2 {
		results = append(results, errno(try(args[i], args[i+1])))
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func try(op, path string) error {
	switch op {
	case "read":
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	case "list":
		_, err := os.ReadDir(path)
		return err
	case "write":
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			if f, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
				err = f.Close()
			}
			return err
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString("x")
		return errors.Join(err, f.Close(), os.Remove(path))
	case "mkdir":
		err := os.Mkdir(filepath.Clean(path), 0o777)
		if err == nil {
			err = os.Remove(path)
		}
		return err
	case "exec":
		return unix.Access(path, unix.X_OK)
	}
	return fmt.Errorf("no operation %q", op)
}
