package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRun(t *testing.T) {
	var live bytes.Buffer
	res, err := Run(t.Context(), newCleaner(exits(3, "out", "err")), sh, nil, RunOptions{Stdout: &live})
	if err != nil || res.Status.Code != 3 || string(res.Stdout.Bytes()) != "out" || string(res.Stderr.Bytes()) != "err" || live.String() != "out" {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if res.TimedOut || res.Cancelled || res.Idle || res.Terminated != nil || res.CleanupErr != nil || res.StreamErr != nil {
		t.Errorf("Run = %+v", res)
	}
}

// C065: stdin to its end.
func TestRunStdin(t *testing.T) {
	res, err := Run(t.Context(), newCleaner(copies), sh, nil, RunOptions{Stdin: strings.NewReader("hello")})
	if err != nil || string(res.Stdout.Bytes()) != "hello" || res.Status.Code != 0 {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

// C075: a time-out keeps the output so far, says so, and tells the time.
func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCleaner(hangs("step1\n"))
		res, err := Run(t.Context(), c, sh, nil, RunOptions{Timeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if !res.TimedOut || res.Cancelled || res.Idle || string(res.Stdout.Bytes()) != "step1\n" || res.Elapsed != 2*time.Second || res.Status.Signal != 9 {
			t.Errorf("result %+v", res)
		}
		if res.Terminated == nil || res.Terminated.Outcome != TerminationGone || c.OpenTokens() != 0 {
			t.Errorf("terminated %+v, %d tokens", res.Terminated, c.OpenTokens())
		}
	})
}

func TestRunDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res, err := Run(t.Context(), newCleaner(hangs("")), sh, nil, RunOptions{})
		if err != nil || !res.TimedOut || res.Elapsed != DefaultTimeout {
			t.Errorf("result %+v, %v", res, err)
		}
	})
}

// C077: limits that limit nothing are refused before anything runs.
func TestRunRefusesBadLimits(t *testing.T) {
	for name, opts := range map[string]RunOptions{
		"timeout -1":      {Timeout: -1},
		"timeout -1s":     {Timeout: -time.Second},
		"timeout 1e12":    {Timeout: 1e12 * time.Microsecond},
		"idle negative":   {IdleTimeout: -1},
		"output negative": {OutputLimit: -1},
		"output absurd":   {OutputLimit: MaxOutputLimit + 1},
	} {
		c := newCleaner(exits(0, "", ""))
		_, err := Run(t.Context(), c, sh, nil, opts)
		var p *Problem
		if !errors.As(err, &p) || !errors.Is(err, ErrRefused) || p.Remedy == "" || len(c.history()) > 0 {
			t.Errorf("%s: %v, %q", name, err, c.history())
		}
	}
}

// C077: endless output in bounded memory, cut with exact counts.
func TestRunEndlessOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		yes := func(p *fakeProcess, streams IO) ExitStatus {
			line := bytes.Repeat([]byte("y\n"), 512)
			for {
				select {
				case <-p.term:
					return killed()
				case <-time.After(time.Millisecond):
					n, _ := streams.Stdout.Write(line)
					written += n
				}
			}
		}
		res, err := Run(t.Context(), newCleaner(yes), sh, nil, RunOptions{Timeout: 5 * time.Second, OutputLimit: 4096})
		if err != nil || !res.TimedOut {
			t.Fatalf("Run = %+v, %v", res, err)
		}
		o := res.Stdout
		if len(o.Head)+len(o.Tail) != 4096 || o.Total != int64(written) || o.Dropped != o.Total-4096 || !o.Truncated() {
			t.Errorf("kept %d+%d of %d, dropped %d, written %d", len(o.Head), len(o.Tail), o.Total, o.Dropped, written)
		}
	})
}

func TestRunIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chatty := func(p *fakeProcess, streams IO) ExitStatus {
			for range 5 {
				select {
				case <-time.After(9 * time.Second):
					io.WriteString(streams.Stderr, ".")
				case <-p.term:
					return killed()
				}
			}
			<-p.term
			return killed()
		}
		res, err := Run(t.Context(), newCleaner(chatty), sh, nil, RunOptions{IdleTimeout: 10 * time.Second})
		if err != nil || !res.Idle || res.TimedOut || res.Cancelled || res.Elapsed != 55*time.Second || string(res.Stderr.Bytes()) != "....." {
			t.Errorf("result %+v, %v", res, err)
		}
	})
}

// A reader of the output that takes its time does not make the command idle.
func TestSlowWriterIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := writerFunc(func(p []byte) (int, error) {
			time.Sleep(time.Minute) //sleep: the fake clock of the bubble is what is tested
			return len(p), nil
		})
		two := func(_ *fakeProcess, streams IO) ExitStatus {
			io.WriteString(streams.Stdout, "a")
			io.WriteString(streams.Stdout, "b")
			return ExitStatus{}
		}
		res, err := Run(t.Context(), newCleaner(two), sh, nil, RunOptions{IdleTimeout: time.Minute, Stdout: slow})
		if err != nil || res.Status.Code != 0 || string(res.Stdout.Bytes()) != "ab" {
			t.Errorf("result %+v, %v", res, err)
		}
	})
}

// C083: a cancelled run says so.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newCleaner(hangs(""))
	c.spawned = make(chan *fakeProcess, 1)
	go func() { <-c.spawned; cancel() }()
	res, err := Run(ctx, c, sh, nil, RunOptions{})
	if err != nil || !res.Cancelled || res.TimedOut || res.Terminated == nil || c.OpenTokens() != 0 {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if _, err := Run(ctx, c, sh, nil, RunOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with an ended context = %v", err)
	}
}

// One writer for both streams gets whole writes.
func TestRunSharedWriter(t *testing.T) {
	var both bytes.Buffer // not safe for concurrent use
	noisy := func(_ *fakeProcess, streams IO) ExitStatus {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				io.WriteString(streams.Stderr, "e")
			}
		}()
		for range 200 {
			io.WriteString(streams.Stdout, "o")
		}
		<-done
		return ExitStatus{}
	}
	res, err := Run(t.Context(), newCleaner(noisy), sh, nil, RunOptions{Stdout: &both, Stderr: &both})
	if err != nil || both.Len() != 400 || res.Stdout.Total != 200 || res.Stderr.Total != 200 {
		t.Errorf("Run = %+v, %v; %d bytes", res, err, both.Len())
	}
}

// What cannot be started is an error of its own kind, and nothing ran.
func TestRunStartError(t *testing.T) {
	c := newCleaner(nil)
	c.spawnErr = &StartError{Reason: "no-command", What: "nope"}
	_, err := Run(t.Context(), c, sh, nil, RunOptions{})
	var se *StartError
	if !errors.As(err, &se) || se.What != "nope" || c.OpenTokens() != 0 {
		t.Errorf("Run = %v", err)
	}
}
