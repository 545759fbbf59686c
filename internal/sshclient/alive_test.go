package sshclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/sshtest"
)

// sleeperVar names the configuration of a process that is put to sleep.
const sleeperVar = "BERTH_TEST_SLEEPER"

func TestMain(m *testing.M) {
	if config := os.Getenv(sleeperVar); config != "" {
		if err := sleeper(config); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sleeper connects, says so, and after a line of input uses the very same connection.
func sleeper(config string) error {
	s, err := Read("box", Environment{Home: "/nonexistent", User: "me", ConfigFile: config, Getenv: func(string) string { return "" }})
	if err != nil {
		return err
	}
	g := NewGroup(s, Options{})
	defer g.Close()
	held, err := g.Session(context.Background())
	if err != nil {
		return err
	}
	if err := held.Start(context.Background(), "cat"); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if _, err := held.Write([]byte("same\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(held).ReadString('\n')
	fmt.Print(line)
	return err
}

// A process that was asleep for longer than a peer may be silent has not waited: its
// connection stays. C099
func TestOwnSleepIsNoSilence(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	p := newPlace(t, host("box", s, "ServerAliveInterval 1", "ServerAliveCountMax 1"))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), sleeperVar+"="+p.path(".ssh/config"))
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	for _, step := range []struct {
		signal syscall.Signal
		time.Duration
	}{{syscall.SIGSTOP, 2500 * time.Millisecond}, {syscall.SIGCONT, 300 * time.Millisecond}} {
		if err := cmd.Process.Signal(step.signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(step.Duration) //sleep: of the process, and some time awake
	}
	if _, err := in.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := said.ReadString('\n'); line != "same\n" {
		t.Errorf("it says %q, %v", line, err)
	}
}

// A silent server is noticed within the bound: sessions end as cut, and the next one comes
// over a new connection. C099
func TestSilence(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	p := newPlace(t, host("box", s, "ServerAliveInterval 1", "ServerAliveCountMax 1"))
	g := NewGroup(p.read("box"), Options{})
	defer g.Close()
	held, err := g.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Start(t.Context(), "cat"); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	begun := time.Now()
	select {
	case <-held.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("not noticed")
	}
	if took := time.Since(begun); took < 900*time.Millisecond {
		t.Errorf("given up after %v", took)
	}
	if err, proved := held.Ended(); !errors.Is(err, ErrCut) || proved {
		t.Errorf("the end: %v, proved %t", err, proved)
	}
	s.Resume()
	if err := echo(t.Context(), g); err != nil {
		t.Error(err)
	}
}

// Sessions that a connection does not admit come over another one, and connections without
// sessions do not stay. C097
func TestSessionsOverflow(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{MaxSessions: 2, MaxStartups: "100"})
	p := newPlace(t, host("box", s))
	g := NewGroup(p.read("box"), Options{})
	defer g.Close()
	held := make([]*Session, 7)
	var wg sync.WaitGroup
	for i := range held {
		wg.Go(func() {
			session, err := g.Session(t.Context())
			if err == nil {
				err = session.Start(t.Context(), "cat")
			}
			if err != nil {
				t.Error(err)
				return
			}
			held[i] = session
		})
	}
	wg.Wait()
	if t.Failed() {
		t.Fatal(s.Log())
	}
	if n := len(s.Connections()); n < 4 {
		t.Errorf("%d connections for 7 sessions", n)
	}
	for i, session := range held {
		text := strings.Repeat(fmt.Sprint(i), 10) + "\n"
		if _, err := session.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		if got, err := bufio.NewReader(session).ReadString('\n'); got != text {
			t.Errorf("session %d says %q, %v", i, got, err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		<-session.Done()
		if err, proved := session.Ended(); err != nil || !proved {
			t.Errorf("session %d ended %v, proved %t", i, err, proved)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for len(s.Connections()) > 1 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond) //sleep: between looks
	}
	if n := len(s.Connections()); n > 1 {
		t.Errorf("%d connections without a session", n)
	}
	if err := echo(t.Context(), g); err != nil {
		t.Error(err)
	}
}

// A server that is there and admits no session says so.
func TestNoSessions(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{ExtraConfig: []string{"MaxSessions 0"}})
	p := newPlace(t, host("box", s))
	refused(t, p.connect("box", Options{}), ErrSessions)
}
