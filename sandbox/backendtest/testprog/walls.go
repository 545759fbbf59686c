package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// self writes what the kernel says about this process as JSON: the lines of its status, its
// groups and host name.
func self([]string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(status)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			facts[name] = strings.TrimSpace(value)
		}
	}
	facts["hostname"], _ = os.Hostname()
	facts["sid"] = ""
	if sid, err := unix.Getsid(0); err == nil {
		facts["sid"] = fmt.Sprint(sid)
	}
	for _, ns := range []string{"pid", "net", "mnt", "ipc", "uts", "user"} {
		facts["ns."+ns], _ = os.Readlink("/proc/self/ns/" + ns)
	}
	return json.NewEncoder(os.Stdout).Encode(facts)
}

// connect NETWORK ADDRESS tries to reach something and writes "connected" or why not.
func connect(args []string) error {
	network, err := text(args, 0)
	if err != nil {
		return err
	}
	address, err := text(args, 1)
	if err != nil {
		return err
	}
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		fmt.Print("no: ", err)
		return nil
	}
	fmt.Print("connected")
	return c.Close()
}

// alloc MIB takes memory and touches it, a MiB at a time, and writes how much it got and why no
// more.
func alloc(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	got := 0
	for ; got < n && err == nil; got++ {
		var m []byte
		m, err = unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			break
		}
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
	}
	fmt.Println(got, errno(err))
	return nil
}

// openMany COUNT opens so many files and writes how many it could and why no more.
func openMany(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	got := 0
	for got < n {
		if _, err = unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			break
		}
		got++
	}
	fmt.Println(got, errno(err))
	return nil
}

// trySyscall NAME makes a system call that no command needs, and writes what came of it. Each is
// made in a way that does no harm where it should have been refused.
func trySyscall(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	switch name {
	case "mount":
		err = tryMount()
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWNS)
	case "unshare-user":
		err = unix.Unshare(unix.CLONE_NEWUSER)
	case "sethostname":
		name, _ := os.Hostname()
		err = unix.Sethostname([]byte(name))
	case "chroot":
		err = unix.Chroot("/")
	case "mknod":
		err = unix.Mknod("device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
	case "bpf":
		_, _, e := unix.RawSyscall(unix.SYS_BPF, 0, 0, 0)
		if e != 0 {
			err = e
		}
	case "keyctl":
		_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	case "ptrace":
		err = unix.PtraceSeize(os.Getppid())
	default:
		return fmt.Errorf("no system call %q", name)
	}
	fmt.Print(errno(err))
	return nil
}

// tryMount mounts in a mount namespace of this thread's own, where it can make one.
func tryMount() error {
	runtime.LockOSThread() // the thread ends with its namespace
	if unix.Unshare(unix.CLONE_NEWNS) == nil {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
	}
	return unix.Mount("none", "/tmp", "tmpfs", 0, "size=64k")
}

// environ TEXT counts the processes whose environment can be read, and those that hold TEXT,
// without this one.
func environ(args []string) error {
	needle, err := text(args, 0)
	if err != nil {
		return err
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	readable, found := 0, 0
	for _, f := range files {
		if f == fmt.Sprintf("/proc/%d/environ", os.Getpid()) {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil || len(data) == 0 {
			continue
		}
		readable++
		if strings.Contains(string(data), needle) {
			found++
		}
	}
	fmt.Println(readable, found)
	return nil
}
