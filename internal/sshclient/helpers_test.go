package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/sshtest"
)

// place is a home directory with a configuration, for connections of a test.
type place struct {
	t   *testing.T
	env Environment
}

// newPlace makes one. Neither the user's files nor an agent count in it.
func newPlace(t *testing.T, config ...string) *place {
	t.Helper()
	home := t.TempDir()
	p := &place{t: t, env: Environment{Home: home, User: "me", Getenv: func(string) string { return "" }}}
	p.file(".ssh/config", strings.Join(config, "\n")+"\n")
	return p
}

// file writes a file below the home directory and returns its path.
func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.env.Home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// path is a path below the home directory.
func (p *place) path(name string) string { return filepath.Join(p.env.Home, name) }

// read reads the settings of a destination.
func (p *place) read(destination string) Settings {
	p.t.Helper()
	s, err := Read(destination, p.env)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// host is a Host of the configuration for a server.
func host(alias string, s *sshtest.Server, lines ...string) string {
	text := fmt.Sprintf("Host %s\n HostName %s\n Port %d\n User %s\n GlobalKnownHostsFile none\n", alias, s.Host, s.Port, s.User)
	for _, l := range append(lines, "IdentityFile "+s.IdentityFile, "UserKnownHostsFile "+s.KnownHostsFile) {
		text += " " + l + "\n" // the first of a keyword counts
	}
	return text
}

// connect connects, runs a command, and closes the connection.
func (p *place) connect(destination string, opts Options) error {
	p.t.Helper()
	settings, err := Read(destination, p.env)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	g := NewGroup(settings, opts)
	defer g.Close()
	return echo(ctx, g)
}

// echo runs a command and wants its output and its end.
func echo(ctx context.Context, g *Group) error {
	s, err := g.Session(ctx)
	if err != nil {
		return err
	}
	defer s.Abort()
	if err := s.Start(ctx, "echo here"); err != nil {
		return err
	}
	out, err := io.ReadAll(s)
	if err != nil || string(out) != "here\n" {
		return fmt.Errorf("output %q, %w", out, err)
	}
	<-s.Done()
	if err, proved := s.Ended(); err != nil || !proved {
		return fmt.Errorf("the end: %w, proved %t", err, proved)
	}
	return nil
}

// refused wants a *DialError that matches, and tells what to do.
func refused(t *testing.T, err, want error) {
	t.Helper()
	var d *DialError
	if !errors.As(err, &d) || !errors.Is(err, want) || d.Remedy == "" || d.Host == "" {
		t.Errorf("error %v, want one that matches %q", err, want)
	}
}
