package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A witness is a file that a process holds locked for as long as it lives. Whoever sees the
// file, from inside or outside, can tell by the lock whether the process is alive, whatever
// it did to hide: the kernel gives the lock back only when the process is dead.

// hold becomes the witness at path. The file stays open for good. It may wait a moment for
// somebody who is just looking.
func hold(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return f, err
}

// forever waits without an end.
func forever() {
	for {
		_ = unix.Pause()
	}
}

// readyFD is where a started node says that it holds its witness.
const readyFD = 3

// startReady starts this program in another role and returns when it has said on readyFD
// that it is ready.
func startReady(set func(*exec.Cmd), args ...string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := again(args...)
	cmd.ExtraFiles = []*os.File{w}
	if set != nil {
		set(cmd)
	}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return fmt.Errorf("%q did not become ready: %w", args, err)
	}
	return nil
}

// sayReady tells the starter, where there is one.
func sayReady() {
	f := os.NewFile(readyFD, "ready")
	_, _ = f.Write([]byte{1})
	_ = f.Close()
}

// wait WITNESS writes "ready" and waits for ever.
func wait(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	if _, err := hold(witness); err != nil {
		return err
	}
	fmt.Println("ready")
	forever()
	return nil
}

// late FILE MILLISECONDS [WITNESS] makes FILE after a while.
func late(args []string) error {
	path, err := text(args, 0)
	if err != nil {
		return err
	}
	ms, err := number(args, 1)
	if err != nil {
		return err
	}
	if len(args) > 2 {
		if _, err := hold(args[2]); err != nil {
			return err
		}
		fmt.Println("ready")
	}
	<-time.After(time.Duration(ms) * time.Millisecond)
	if path == "-" {
		return nil
	}
	return os.WriteFile(path, []byte("late"), 0o666)
}

// litter COUNT leaves COUNT processes behind that end by themselves a little later.
func litter(args []string) error {
	n, err := number(args, 0)
	for range n {
		if err := again("late", "-", "50").Start(); err != nil {
			return err
		}
	}
	return err
}

// daemon WITNESS leaves a process behind as a daemon does, and ends once it is ready.
func daemon(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	return startReady(nil, "node", witness, "double")
}

// kinds are the ways in which a node tries to get away.
func kinds() []string {
	return []string{"plain", "session", "double", "bare", "stubborn", "closed", "frozen", "nested"}
}

// tree PREFIX COUNT [KIND] starts COUNT nodes with witnesses PREFIX.0 to PREFIX.COUNT-1, of the
// kind or of all kinds in turn, writes "ready" when all of them are, and waits for ever.
func tree(args []string) error {
	prefix, err := text(args, 0)
	if err != nil {
		return err
	}
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	for i := range n {
		kind := kinds()[i%len(kinds())]
		if len(args) > 2 {
			kind = args[2]
		}
		if err := startReady(nil, "node", fmt.Sprintf("%s.%d", prefix, i), kind); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	forever()
	return nil
}

// node WITNESS KIND is a process of a tree.
func node(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	kind, err := text(args, 1)
	if err != nil {
		return err
	}
	// Gets away by a grandchild: this process ends.
	grandchild := func(kind string, set func(*exec.Cmd)) error {
		cmd := again("node", witness, kind)
		cmd.ExtraFiles = []*os.File{os.NewFile(readyFD, "ready")}
		set(cmd)
		return cmd.Start()
	}
	detached := &syscall.SysProcAttr{Setsid: true}
	switch kind {
	case "session":
		return grandchild("plain", func(c *exec.Cmd) { c.SysProcAttr = detached })
	case "double":
		return grandchild("session", func(c *exec.Cmd) { c.SysProcAttr = detached })
	case "bare":
		return grandchild("plain", func(c *exec.Cmd) { c.SysProcAttr, c.Env = detached, []string{} })
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	case "closed":
		for fd := range 3 {
			_ = unix.Close(fd)
		}
		if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
	case "nested":
		if err := startReady(nil, "node", witness+".below", "stubborn"); err != nil {
			return err
		}
	}
	if _, err := hold(witness); err != nil {
		return err
	}
	sayReady()
	if kind == "frozen" {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}
	forever()
	return nil
}

// run-on WITNESS is a process that is always somebody else: it starts itself in a new session
// with an empty environment and ends, again and again. The witness is handed on.
func runOn(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	var f *os.File
	if len(args) > 1 {
		f = os.NewFile(readyFD, "witness")
	} else {
		if f, err = hold(witness); err != nil {
			return err
		}
		fmt.Println("ready")
	}
	cmd := again("run-on", witness, "again")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	if len(args) == 1 {
		forever() // the command itself stays
	}
	return nil
}

// on-signal SIGNAL FILE [WITNESS] writes "ready", and when the signal comes writes FILE and
// exits with code 7.
func onSignal(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	path, err := text(args, 1)
	if err != nil {
		return err
	}
	if len(args) > 2 {
		if _, err := hold(args[2]); err != nil {
			return err
		}
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.Signal(n))
	fmt.Println("ready")
	<-came
	if err := os.WriteFile(path, []byte("came"), 0o666); err != nil {
		return err
	}
	os.Exit(7)
	return nil
}

// bomb PREFIX MOST starts itself twice, and each of those does so too, until there are MOST or
// the system says no. Each has a witness PREFIX.N.
func bomb(args []string) error {
	prefix, err := text(args, 0)
	if err != nil {
		return err
	}
	most, err := number(args, 1)
	if err != nil {
		return err
	}
	for i := range most {
		path := fmt.Sprintf("%s.%d", prefix, i)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.Close()
		if _, err := hold(path); err != nil {
			return err
		}
		for range 2 {
			_ = again("bomb", prefix, strconv.Itoa(most)).Start() // the limit may say no
		}
		forever()
	}
	return nil // all places are taken
}

// regicide WITNESS kills its parent, having made a process that is somewhere else, and stays.
func regicide(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	if err := startReady(nil, "node", witness+".away", "bare"); err != nil {
		return err
	}
	if _, err := hold(witness); err != nil {
		return err
	}
	parent := os.Getppid()
	// Said first: whoever watches over the watcher may end this process at once.
	fmt.Println("ready", parent, unix.Kill(parent, 0) == nil && parent > 1)
	_ = unix.Kill(parent, unix.SIGKILL)
	forever()
	return nil
}

// killPid PID SIGNAL sends a signal and writes what came of it.
func killPid(args []string) error {
	pid, err := number(args, 0)
	if err != nil {
		return err
	}
	sig, err := number(args, 1)
	if err != nil {
		return err
	}
	fmt.Print(errno(unix.Kill(pid, syscall.Signal(sig))))
	return nil
}

// process is what procs tells of one process.
type process struct {
	Pid   int      `json:"pid"`
	State string   `json:"state"`
	Args  []string `json:"args"`
}

// procs writes the processes that can be seen, without this one, as JSON.
func procs([]string) error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	found := []process{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		args, _ := os.ReadFile(dir + "/cmdline")
		p := process{Pid: pid, Args: strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")}
		if rest := stat[strings.LastIndexByte(string(stat), ')')+1:]; len(rest) > 1 {
			p.State = string(rest[1])
		}
		found = append(found, p)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
