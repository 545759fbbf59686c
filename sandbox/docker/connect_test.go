package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// environment is a test's environment variables.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// The engine is found as the docker program finds it.
func TestFind(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".docker")
	sum := sha256.Sum256([]byte("work"))
	id := hex.EncodeToString(sum[:])
	for path, content := range map[string]string{
		"config.json":                           `{"currentContext":"work"}`,
		"contexts/meta/" + id + "/meta.json":    `{"Name":"work","Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2376"}}}`,
		"contexts/tls/" + id + "/docker/ca.pem": "x",
	} {
		path = filepath.Join(config, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		host string
		env  environment
		want string
		tls  bool
		fail bool
	}{
		"explicit":        {host: "unix:///a", env: environment{"DOCKER_HOST": "unix:///b"}, want: "unix:///a"},
		"DOCKER_HOST":     {env: environment{"DOCKER_HOST": "unix:///b", "HOME": home}, want: "unix:///b"},
		"context in use":  {env: environment{"HOME": home}, want: "tcp://127.0.0.1:2376", tls: true},
		"DOCKER_CONFIG":   {env: environment{"HOME": "/nowhere", "DOCKER_CONFIG": config}, want: "tcp://127.0.0.1:2376", tls: true},
		"default context": {env: environment{"HOME": home, "DOCKER_CONTEXT": "default"}, want: "unix:///var/run/docker.sock"},
		"nothing":         {env: environment{"HOME": "/nowhere"}, want: "unix:///var/run/docker.sock"},
		"unknown context": {env: environment{"HOME": home, "DOCKER_CONTEXT": "other"}, fail: true},
		"with TLS":        {env: environment{"DOCKER_HOST": "tcp://127.0.0.1:1", "DOCKER_TLS_VERIFY": "1", "HOME": home}, want: "tcp://127.0.0.1:1", tls: true},
	} {
		e, err := find(Options{Host: c.host, Getenv: c.env.get})
		if c.fail != (err != nil) || e.host != c.want || (e.tls != "") != c.tls {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// An engine on another machine is refused, however it is named.
func TestElsewhere(t *testing.T) {
	for address, there := range map[string]bool{
		"ssh://me@build": true, "tcp://10.0.0.1:2375": true, "tcp://build:2376": true, "https://build": true,
		"tcp://127.0.0.1:2375": false, "tcp://localhost:2375": false, "tcp://[::1]:2375": false, "unix:///run/docker.sock": false,
	} {
		engine, err := connect(endpoint{host: address, from: "a test"}, nil)
		var p *sandbox.Problem
		if there && (!errors.As(err, &p) || !errors.Is(err, sandbox.ErrUnavailable) || p.Remedy == "") {
			t.Errorf("%s: %v", address, err)
		}
		if !there && err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if engine != nil {
			_ = engine.Close()
		}
	}
	if _, err := connect(endpoint{host: "/run/docker.sock"}, nil); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("no address: %v", err)
	}
}
