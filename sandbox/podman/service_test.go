package podman

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/workberth/workberth/internal/container"
)

// A service of our own answers, ends with its client, and is replaced when it is killed.
func TestOwnService(t *testing.T) {
	if _, err := exec.LookPath("podman"); err != nil {
		if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	env := map[string]string{"PATH": os.Getenv("PATH"), "XDG_RUNTIME_DIR": dir, "HOME": dir}
	b, err := New(Options{StateDir: dir + "/state", Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if infos, err := b.List(t.Context()); err != nil || len(infos) != 0 {
		t.Errorf("List: %+v, %v", infos, err)
	}
	opts := Options{Getenv: func(name string) string { return env[name] }}
	engine, err := startService(t.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := engine.(*service)
	if about, err := s.Describe(t.Context()); err != nil || about.Product != "podman" {
		t.Errorf("%+v, %v", about, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if !s.Ended() {
		t.Error("a killed service has not ended")
	}
	if _, err := s.Inspect(context.Background(), "x"); !errors.Is(err, container.ErrUnreachable) {
		t.Errorf("Inspect on a killed service: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}

// Without the program there is a clear error.
func TestNoProgram(t *testing.T) {
	_, err := startService(t.Context(), Options{Getenv: func(string) string { return "/nowhere" }}, slog.New(slog.DiscardHandler))
	if err == nil || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
