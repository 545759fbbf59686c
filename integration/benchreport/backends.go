package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/integration/bench"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/podman"
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
func (o options) open(name, dir string, engines map[string]*bench.Engine) (b *bench.Bench, done func() error, err error) {
	helper, state := filepath.Join(dir, "berth-guest"), filepath.Join(dir, "state-"+name)
	b = &bench.Bench{Name: name, Engine: engines[name], Config: sandbox.DefaultConfig(), Berth: filepath.Join(dir, "berth"), Dir: dir, Short: o.short}
	if name == bubblewrap.Name {
		b.Engine = engines[docker.Name]
		b.Backend, err = bubblewrap.New(bubblewrap.Options{HelperPath: helper, StateDir: state})
		return b, nothing, err
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

// nothing closes what needs no closing.
func nothing() error { return nil }
