package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dumpArgs writes the arguments as a JSON list of byte strings.
func dumpArgs(args []string) error {
	list := make([][]byte, len(args))
	for i, a := range args {
		list[i] = []byte(a)
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

// dumpEnv writes the environment as the kernel gave it, a NUL after each variable.
func dumpEnv([]string) error {
	for _, v := range os.Environ() {
		if _, err := os.Stdout.WriteString(v + "\x00"); err != nil {
			return err
		}
	}
	return nil
}

// pattern is byte i of the output of emit: it repeats after a prime, so that a lost, doubled
// or moved piece shows.
func pattern(i int) byte { return byte('!' + i%89) }

// emit SIZE [ERRSIZE [CODE [BLOCK]]] writes SIZE bytes of the pattern to standard output and
// ERRSIZE to standard error, BLOCK bytes at a time and taking turns, and exits with CODE.
func emit(args []string) error {
	sizes := [4]int{0, 0, 0, 32 << 10}
	for i := range args {
		n, err := number(args, i)
		if err != nil {
			return err
		}
		sizes[i] = n
	}
	outputs := []struct {
		f    *os.File
		left int
		at   int
	}{{f: os.Stdout, left: sizes[0]}, {f: os.Stderr, left: sizes[1]}}
	for busy := true; busy; {
		busy = false
		for i := range outputs {
			o := &outputs[i]
			if o.left == 0 {
				continue
			}
			busy = true
			p := make([]byte, min(sizes[3], o.left))
			for j := range p {
				p[j] = pattern(o.at + j)
			}
			if _, err := o.f.Write(p); err != nil {
				return err
			}
			o.at += len(p)
			o.left -= len(p)
		}
	}
	os.Exit(sizes[2])
	return nil
}

// printBytes STDOUT [STDERR] writes the quoted Go strings exactly.
func printBytes(args []string) error {
	for i, f := range []*os.File{os.Stdout, os.Stderr} {
		if i < len(args) {
			s, err := strconv.Unquote(args[i])
			if err != nil {
				return err
			}
			if _, err := f.WriteString(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// cat copies standard input to standard output.
func cat([]string) error {
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

// count writes the number of bytes of standard input.
func count([]string) error {
	n, err := io.Copy(io.Discard, os.Stdin)
	fmt.Print(n)
	return err
}

// digest writes the SHA-256 of standard input.
func digest([]string) error {
	h := sha256.New()
	if _, err := io.Copy(h, os.Stdin); err != nil {
		return err
	}
	fmt.Printf("%x", h.Sum(nil))
	return nil
}

// endless writes "y" lines for ever.
func endless([]string) error {
	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		if _, err := w.WriteString("y\n"); err != nil {
			return err
		}
	}
}

// exit CODE exits; the system keeps the lowest eight bits.
func exit(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	unix.Exit(n)
	return nil
}

// suicide SIGNAL dies by the signal: one of those the Go runtime dies by as the kernel would
// (1, 2, 9, 15).
func suicide(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	if err := unix.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
		return err
	}
	forever()
	return nil
}

// linger WITNESS [stay] writes "out1", leaves a process behind that holds the output open, and
// ends once that one is ready, or stays.
func linger(args []string) error {
	witness, err := text(args, 0)
	if err != nil {
		return err
	}
	if err := startReady(func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr }, "node", witness, "plain"); err != nil {
		return err
	}
	_, err = os.Stdout.WriteString("out1\n")
	if len(args) > 1 {
		forever()
	}
	return err
}

// again is this program in another role.
func again(args ...string) *exec.Cmd {
	self := "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		self, _ = os.Executable()
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "testprog"
	return cmd
}

// tty tells whether standard input is a terminal, its size and TERM; then, for each line of
// standard input, the size again, until "end".
func tty([]string) error {
	size := func() {
		ws, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err != nil {
			fmt.Printf("size none %v\n", err)
			return
		}
		fmt.Printf("size %d %d\n", ws.Row, ws.Col)
	}
	_, err := unix.IoctlGetTermios(0, unix.TCGETS)
	fmt.Printf("tty %t term %q\n", err == nil, os.Getenv("TERM"))
	size()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "end" {
		size()
	}
	return lines.Err()
}
