package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// kit is what a check works with.
type kit struct {
	*testing.T
	*suite

	ctx  context.Context
	made int
}

// spec describes a hardened container that runs a script.
func (k *kit) spec(script string) container.Spec {
	k.made++
	return container.Spec{
		Name:   fmt.Sprintf("enginetest-%s-%s-%d", k.word, slug(k.Name()), k.made),
		Image:  k.plain,
		Labels: map[string]string{label: k.word},
		Argv:   []string{"/bin/sh", "-c", script},
		Env:    []string{"PATH=/bin"},
		User:   "1234:2345", Workdir: "/", Hostname: "box",
		Mounts:       []container.Mount{{Target: "/tmp", Size: 16 << 20, Mode: 0o1777}},
		ReadOnlyRoot: true, Network: "none",
		Limits: container.Limits{Pids: 64},
	}
}

// slug makes a part of a container's name.
func slug(s string) string {
	s = strings.ToLower(s[strings.LastIndexByte(s, '/')+1:])
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s)
}

// create makes a container that is removed with the check.
func (k *kit) create(s container.Spec) string {
	k.Helper()
	made, err := k.engine.Create(k.ctx, s)
	if err != nil {
		k.Fatalf("Create: %v", err)
	}
	k.Cleanup(func() { k.remove(made.ID) })
	return made.ID
}

// remove removes a container, also after the check's time is over.
func (k *kit) remove(id string) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := k.engine.Remove(ctx, id); err != nil {
		k.Errorf("Remove: %v", err)
	}
}

// start creates and starts a container.
func (k *kit) start(s container.Spec) string {
	k.Helper()
	id := k.create(s)
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatalf("Start: %v", err)
	}
	return id
}

// wait waits for the end of a container.
func (k *kit) wait(id string) int {
	k.Helper()
	code, err := k.engine.Wait(k.ctx, id)
	if err != nil {
		k.Fatalf("Wait: %v", err)
	}
	return code
}

// output returns what a container wrote.
func (k *kit) output(id string) string {
	k.Helper()
	text, err := k.engine.Logs(k.ctx, id, 1000, time.Time{})
	if err != nil {
		k.Fatalf("Logs: %v", err)
	}
	return string(text)
}

// inspect describes a container.
func (k *kit) inspect(id string) container.Container {
	k.Helper()
	c, err := k.engine.Inspect(k.ctx, id)
	if err != nil {
		k.Fatalf("Inspect: %v", err)
	}
	return c
}

// run runs a container to its end.
func (k *kit) run(s container.Spec) (code int, output string) {
	k.Helper()
	id := k.start(s)
	code = k.wait(id)
	return code, k.output(id)
}

// mustRun runs a container that ends well, and returns what it wrote without the last line's end.
func (k *kit) mustRun(s container.Spec) string {
	k.Helper()
	code, output := k.run(s)
	if code != 0 {
		k.Fatalf("exit code %d, output %q", code, output)
	}
	return strings.TrimRight(output, "\n")
}

// awaitOutput waits until a container has written a word.
func (k *kit) awaitOutput(id, word string) {
	k.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := k.engine.Logs(k.ctx, id, 1000, time.Time{})
		if err != nil {
			k.Fatalf("Logs: %v", err)
		}
		if bytes.Contains(text, []byte(word)) {
			return
		}
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			k.Fatalf("the container did not write %q, but %q", word, text)
		}
	}
}

// wantErr wants an error of a kind and of no other.
func (k *kit) wantErr(what string, err, kind error) {
	k.Helper()
	if !errors.Is(err, kind) {
		k.Errorf("%s: %v, want it to match %q", what, err, kind)
	}
	for _, other := range []error{container.ErrNotFound, container.ErrConflict, container.ErrUnreachable, context.Canceled} {
		if kind != other && errors.Is(err, other) { //nolint:errorlint // which of them it is
			k.Errorf("%s: %v matches %q too", what, err, other)
		}
	}
}
