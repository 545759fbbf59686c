package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func startBackground(t *testing.T, c *Commands, opts CommandOptions) CommandInfo {
	t.Helper()
	info, err := c.Start(t.Context(), Command{Argv: []string{"x", "y"}, Dir: "d"}, Env{"S": "hunter2"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestBackgroundCommand(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sb := newCleaner(copies)
	c := NewCommands(sb, CommandsOptions{Now: func() time.Time { now = now.Add(time.Second); return now }})
	info := startBackground(t, c, CommandOptions{Stdin: true})
	if info.State != CommandRunning || info.Pid != 100 || len(info.Argv) != 2 || info.Dir != "d" || info.Started.IsZero() || !info.Ended.IsZero() || info.Status != nil {
		t.Errorf("started %+v", info)
	}
	if err := c.Remove(info.ID); !errors.Is(err, ErrRefused) {
		t.Errorf("removing a running command: %v", err)
	}
	if n, err := c.WriteStdin(t.Context(), info.ID, []byte("hello ")); n != 6 || err != nil {
		t.Errorf("WriteStdin = %d, %v", n, err)
	}
	chunk, err := c.Follow(t.Context(), info.ID, StreamStdout, 0, 3)
	if err != nil || string(chunk.Data) != "hel" || chunk.Next != 3 || chunk.End {
		t.Errorf("Follow = %+v, %v", chunk, err)
	}
	if n, err := c.WriteStdin(t.Context(), info.ID, []byte("world")); n != 5 || err != nil {
		t.Errorf("WriteStdin = %d, %v", n, err)
	}
	for range 2 {
		if err := c.CloseStdin(info.ID); err != nil {
			t.Error(err)
		}
	}
	info, err = c.Wait(t.Context(), info.ID)
	if err != nil || info.State != CommandExited || info.Status == nil || info.Status.Code != 0 || info.Stdout != 11 || !info.Ended.After(info.Started) {
		t.Errorf("ended %+v, %v", info, err)
	}
	if chunk, err := c.Read(info.ID, StreamStdout, 3, 0); err != nil || string(chunk.Data) != "lo world" || !chunk.End {
		t.Errorf("Read = %+v, %v", chunk, err)
	}
	if _, err := c.Read(info.ID, "stdlog", 0, 0); !errors.Is(err, ErrRefused) {
		t.Errorf("odd stream: %v", err)
	}
	if _, err := c.WriteStdin(t.Context(), info.ID, []byte("late")); err == nil {
		t.Error("wrote to a command that has ended")
	}
	if text := fmt.Sprintf("%+v", c.List()); strings.Contains(text, "hunter2") {
		t.Error("the value of a variable is listed")
	}
	if err := c.Remove(info.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(info.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get after Remove = %v", err)
	}
	if sb.OpenTokens() != 0 {
		t.Error("a token is left")
	}
}

func TestBackgroundUnknownCommand(t *testing.T) {
	c := NewCommands(newCleaner(nil), CommandsOptions{})
	ctx := t.Context()
	calls := map[string]func() error{
		"Get":        func() error { _, err := c.Get("cmd-x"); return err },
		"Wait":       func() error { _, err := c.Wait(ctx, "cmd-x"); return err },
		"Read":       func() error { _, err := c.Read("cmd-x", StreamStdout, 0, 0); return err },
		"Follow":     func() error { _, err := c.Follow(ctx, "cmd-x", StreamStdout, 0, 0); return err },
		"WriteStdin": func() error { _, err := c.WriteStdin(ctx, "cmd-x", nil); return err },
		"CloseStdin": func() error { return c.CloseStdin("cmd-x") },
		"Signal":     func() error { return c.Signal(ctx, "cmd-x", 1) },
		"Resize":     func() error { return c.Resize(ctx, "cmd-x", TTYSize{}) },
		"Kill":       func() error { _, err := c.Kill(ctx, "cmd-x", 0); return err },
		"Remove":     func() error { return c.Remove("cmd-x") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s = %v", name, err)
		}
	}
}

func TestBackgroundKill(t *testing.T) {
	sb := newCleaner(hangs("x"))
	c := NewCommands(sb, CommandsOptions{})
	info := startBackground(t, c, CommandOptions{})
	if err := c.Signal(t.Context(), info.ID, 10); err != nil {
		t.Error(err)
	}
	res, err := c.Kill(t.Context(), info.ID, time.Second)
	if err != nil || res.Outcome != TerminationGone {
		t.Fatalf("Kill = %+v, %v", res, err)
	}
	info, err = c.Get(info.ID)
	if err != nil || info.State != CommandKilled || info.Status.Signal != 9 || info.Terminated.Outcome != TerminationGone {
		t.Errorf("killed %+v, %v", info, err)
	}
	if res, err := c.Kill(t.Context(), info.ID, 0); err != nil || res.Outcome != TerminationGone {
		t.Errorf("Kill again = %+v, %v", res, err)
	}
	if sb.OpenTokens() != 0 {
		t.Error("a token is left")
	}
}

// The default: a command dies with its client. The choice: it stays.
func TestBackgroundLease(t *testing.T) {
	sb := newCleaner(hangs(""))
	c := NewCommands(sb, CommandsOptions{})
	client, leave := context.WithCancel(t.Context())
	bound := startBackground(t, c, CommandOptions{Client: client})
	other := startBackground(t, c, CommandOptions{Client: t.Context()})
	kept := startBackground(t, c, CommandOptions{KeepUntilEnd: true})
	leave()
	if info, err := c.Wait(t.Context(), bound.ID); err != nil || info.State != CommandKilled {
		t.Errorf("a command outlived its client: %+v, %v", info, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if info, _ := c.Get(other.ID); info.State != CommandKilled {
		t.Errorf("Close left %+v", info)
	}
	if info, _ := c.Get(kept.ID); info.State != CommandRunning || !info.KeepUntilEnd || c.Running() != 1 {
		t.Errorf("Close ended a command that was to be kept: %+v", info)
	}
	if _, err := c.Start(t.Context(), sh, nil, CommandOptions{}); !errors.Is(err, ErrGone) {
		t.Errorf("Start after Close = %v", err)
	}
	if _, err := c.Kill(t.Context(), kept.ID, 0); err != nil {
		t.Error(err)
	}
	if sb.OpenTokens() != 0 {
		t.Error("a token is left")
	}
	if _, err := NewCommands(sb, CommandsOptions{}).Start(t.Context(), sh, nil, CommandOptions{KeepUntilEnd: true, Client: client}); !errors.Is(err, ErrRefused) {
		t.Errorf("kept and bound = %v", err)
	}
}

// The end of the starting call's context after the start is nothing to the command.
func TestBackgroundOutlivesStart(t *testing.T) {
	c := NewCommands(newCleaner(hangs("")), CommandsOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	info, err := c.Start(ctx, sh, nil, CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	wait, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := c.Wait(wait, info.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
	if info, _ := c.Get(info.ID); info.State != CommandRunning {
		t.Errorf("%+v", info)
	}
	c.Close(t.Context())
	if _, err := c.Start(ctx, sh, nil, CommandOptions{}); err == nil {
		t.Error("started with an ended context")
	}
}

func TestBackgroundBounds(t *testing.T) {
	sb := newCleaner(hangs(""))
	c := NewCommands(sb, CommandsOptions{MaxRunning: 2, MaxFinished: 2})
	var ids []CommandID
	for range 2 {
		ids = append(ids, startBackground(t, c, CommandOptions{}).ID)
	}
	if _, err := c.Start(t.Context(), sh, nil, CommandOptions{}); !errors.Is(err, ErrRefused) {
		t.Errorf("one more = %v", err)
	}
	for i := range 4 {
		if _, err := c.Kill(t.Context(), ids[i], 0); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, startBackground(t, c, CommandOptions{}).ID)
	}
	// The oldest finished ones are forgotten, running ones never.
	var listed []CommandID
	for _, info := range c.List() {
		listed = append(listed, info.ID)
	}
	if want := ids[2:]; fmt.Sprint(listed) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", listed, want)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := c.List(); len(got) != 2 {
		t.Errorf("%d kept", len(got))
	}
	if sb.OpenTokens() != 0 {
		t.Error("a token is left")
	}
	if _, err := c.Start(t.Context(), sh, nil, CommandOptions{OutputLimit: -1}); !errors.Is(err, ErrRefused) {
		t.Errorf("bad limit = %v", err)
	}
}

// A sandbox that is lost makes its commands unknown.
func TestBackgroundUnknown(t *testing.T) {
	sb := newCleaner(func(*fakeProcess, IO) ExitStatus { return ExitStatus{Unknown: true, Reason: "engine lost"} })
	c := NewCommands(sb, CommandsOptions{})
	info, err := c.Wait(t.Context(), startBackground(t, c, CommandOptions{}).ID)
	if err != nil || info.State != CommandUnknown || info.Status.Reason != "engine lost" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestBackgroundConcurrently(t *testing.T) {
	sb := newCleaner(copies)
	c := NewCommands(sb, CommandsOptions{MaxFinished: 1000})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			info, err := c.Start(t.Context(), sh, nil, CommandOptions{Stdin: true})
			if err != nil {
				t.Error(err)
				return
			}
			want := strings.Repeat(fmt.Sprintf("%d;", i), 50000)
			wg.Go(func() {
				if _, err := c.WriteStdin(t.Context(), info.ID, []byte(want)); err != nil {
					t.Error(err)
				}
				c.CloseStdin(info.ID)
			})
			var got strings.Builder
			for cursor := int64(0); ; {
				chunk, err := c.Follow(t.Context(), info.ID, StreamStdout, cursor, 0)
				if err != nil || chunk.Dropped > 0 {
					t.Errorf("Follow = %d dropped, %v", chunk.Dropped, err)
					return
				}
				got.Write(chunk.Data)
				if cursor = chunk.Next; chunk.End {
					break
				}
				c.List()
			}
			if got.String() != want {
				t.Errorf("command %d: %d bytes, want %d", i, got.Len(), len(want))
			}
			if _, err := c.Wait(t.Context(), info.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c.Running() != 0 || sb.OpenTokens() != 0 {
		t.Errorf("%d running, %d tokens", c.Running(), sb.OpenTokens())
	}
}

// A writer to a command that does not read gives up with its context, and is freed by
// the end of the command.
func TestStdinThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sb := newCleaner(hangs(""))
		c := NewCommands(sb, CommandsOptions{})
		info, err := c.Start(t.Context(), sh, nil, CommandOptions{Stdin: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, err := c.WriteStdin(ctx, info.ID, make([]byte, 1<<20))
		if n != stdinBuffer || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WriteStdin = %d, %v", n, err)
		}
		freed := make(chan error, 1)
		go func() { _, err := c.WriteStdin(t.Context(), info.ID, []byte("x")); freed <- err }()
		synctest.Wait()
		if _, err := c.Kill(t.Context(), info.ID, 0); err != nil {
			t.Error(err)
		}
		if err := <-freed; !errors.Is(err, errStdinClosed) {
			t.Errorf("a writer was freed with %v", err)
		}
		no, err := c.Start(t.Context(), sh, nil, CommandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.WriteStdin(t.Context(), no.ID, []byte("x")); !errors.Is(err, ErrRefused) {
			t.Errorf("write to a command without stdin = %v", err)
		}
		c.Close(t.Context())
	})
}

func TestStdinPipe(t *testing.T) {
	p := newStdinPipe()
	want := strings.Repeat("0123456789", 30000)
	go func() {
		for i := 0; i < len(want); i += 70001 {
			if _, err := p.write(t.Context(), []byte(want[i:min(i+70001, len(want))])); err != nil {
				t.Error(err)
			}
		}
		p.close(false)
		p.close(false)
	}()
	got, err := io.ReadAll(p)
	if err != nil || string(got) != want {
		t.Errorf("read %d bytes, %v; want %d", len(got), err, len(want))
	}
}
