package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/integration/bench"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/podman"
	"github.com/workberth/workberth/sandbox/ssh"
)

// names is the value of -backend: words with commas between them, and several of them.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

// Set adds words.
func (n *names) Set(words string) error {
	for word := range strings.SplitSeq(words, ",") {
		if !slices.Contains(bench.Backends(), word) {
			return fmt.Errorf("there is no backend %q; there are %s", word, strings.Join(bench.Backends(), ", "))
		}
		*n = append(*n, word)
	}
	return nil
}

// engines connects to those that there are addresses of.
func (o options) engines(ctx context.Context) (map[string]*bench.Engine, error) {
	found := map[string]*bench.Engine{}
	for name, address := range map[string]string{docker.Name: o.docker, podman.Name: o.podman} {
		if address == "" {
			continue
		}
		engine, err := bench.NewEngine(ctx, name, address, o.image)
		if err != nil {
			return nil, err
		}
		found[name] = engine
	}
	return found, nil
}

// open opens a backend with the helper and the state in dir; done closes it.
func (o options) open(ctx context.Context, name, dir string, engines map[string]*bench.Engine) (b *bench.Bench, done func() error, err error) {
	helper, state := filepath.Join(dir, "berth-guest"), filepath.Join(dir, "state-"+name)
	b = &bench.Bench{Name: name, Engine: engines[name], Config: sandbox.DefaultConfig(), Berth: filepath.Join(dir, "berth"), Dir: dir, Short: o.short}
	if name == bubblewrap.Name {
		b.Engine = engines[docker.Name]
		b.Backend, err = bubblewrap.New(bubblewrap.Options{HelperPath: helper, StateDir: state})
		return b, nothing, err
	}
	if name == ssh.Name {
		done, err = overSSH(ctx, b, helper, state)
		return b, done, err
	}
	if b.Engine == nil {
		b.Missing = "no engine here"
		return b, nothing, nil
	}
	b.Config.Image = o.image
	switch name {
	case docker.Name:
		d, err := docker.New(docker.Options{Host: b.Engine.Address(), HelperPath: helper, StateDir: state})
		if err != nil {
			return nil, nil, err
		}
		b.Backend, done = d, d.Close
	case podman.Name:
		p, err := podman.New(podman.Options{Host: b.Engine.Address(), HelperPath: helper, StateDir: state})
		if err != nil {
			return nil, nil, err
		}
		b.Backend, done = p, p.Close
	default:
		return nil, nil, errors.New("no backend " + name)
	}
	return b, done, nil
}

// overSSH opens the backend ssh, to a server of its own.
func overSSH(ctx context.Context, b *bench.Bench, helper, state string) (done func() error, err error) {
	dir := filepath.Join(b.Dir, "sshd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	server, err := bench.StartSSH(ctx, dir)
	if errors.Is(err, exec.ErrNotFound) {
		b.Missing = err.Error()
		return nothing, nil
	}
	if err != nil {
		return nil, err
	}
	b.SSH, b.Config = server, ssh.DefaultConfig()
	b.Config.SSH, b.Config.SSHConfig = "bench", server.Config
	b.Backend, err = ssh.New(ssh.Options{StateDir: state, Helper: func(arch string) (helperbin.Helper, error) {
		return helperbin.For("linux", arch, helperbin.Options{Env: func(name string) string {
			return map[string]string{helperbin.EnvPath: helper}[name]
		}})
	}})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server.Close, nil
}

// nothing closes what needs no closing.
func nothing() error { return nil }
