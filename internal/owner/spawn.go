package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// maxAnswer bounds what a started owner says on its standard output, in bytes.
const maxAnswer = 1 << 20

// spawn starts an owner and waits until it serves or says why it cannot.
func spawn(ctx context.Context, req Request, opts Options) error {
	if opts.BeforeStart != nil {
		if err := opts.BeforeStart(ctx); err != nil {
			return err
		}
	}
	timeout := opts.StartTimeout
	if timeout <= 0 {
		timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	idle := opts.Idle
	if idle <= 0 {
		idle = DefaultIdle
	}
	input, err := json.Marshal(bootstrap{Backend: req.Backend, ID: req.ID, Spec: req.Spec, RuntimeDir: opts.RuntimeDir, Idle: idle})
	if err != nil {
		return fmt.Errorf("start owner: %w", err)
	}
	logFile, err := os.OpenFile(filepath.Join(opts.RuntimeDir, string(req.ID)+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start owner: %w", err)
	}
	defer logFile.Close()

	// Not CommandContext: once it serves, the owner outlives this call.
	cmd := exec.Command(opts.Executable, opts.Args...)
	cmd.Env = ownerEnv(opts.Env)
	cmd.Dir = "/"
	cmd.Stderr = logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start owner: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start owner: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start owner: %w", err)
	}
	said := make(chan error, 1)
	go func() {
		_, err := in.Write(input)
		if cerr := in.Close(); err == nil {
			err = cerr
		}
		if err != nil && !errors.Is(err, syscall.EPIPE) {
			said <- fmt.Errorf("start owner: %w", err)
			return
		}
		said <- readAnswer(out)
	}()
	select {
	case err = <-said:
	case <-ctx.Done():
		err = fmt.Errorf("start owner of sandbox %s: %w", req.ID, ctx.Err())
	}
	if err == nil {
		return cmd.Process.Release()
	}
	// It failed or is too slow: it must not go on behind our back. TERM lets it
	// take its sandbox down; KILL after that is safe since the sandbox dies too.
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // its exit code adds nothing to err
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill() // it may have ended just now
		<-ended
	}
	return err
}

// readAnswer reads the one line an owner says when it serves or has failed.
func readAnswer(r io.Reader) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxAnswer)).ReadBytes('\n')
	if err != nil {
		return &sandbox.Problem{
			What:   "the owner process ended before the sandbox was ready",
			Remedy: "see its log with --verbose, and: berth doctor",
			Err:    sandbox.ErrUnavailable,
		}
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("start owner: it said something that is no answer: %w", err)
	}
	if a.Error != nil {
		return a.Error.err()
	}
	return nil
}
