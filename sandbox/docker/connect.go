package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/moby"
	"github.com/workberth/workberth/sandbox"
)

// endpoint is where an engine is, and who says so.
type endpoint struct {
	host string
	from string
	// tls is a directory with ca.pem, cert.pem and key.pem; empty for none.
	tls string
}

// plain reports whether nothing protects what goes to the engine and back.
func (e endpoint) plain() bool {
	return strings.HasPrefix(e.host, "http://") || strings.HasPrefix(e.host, "tcp://") && e.tls == ""
}

// connect opens an engine.
func connect(ctx context.Context, e endpoint, opts Options) (container.Engine, error) {
	scheme, _, _ := strings.Cut(e.host, "://")
	mopts := moby.Options{Host: e.host, Logger: opts.Logger}
	switch scheme {
	case "unix":
	case "tcp", "http", "https":
		if e.tls != "" {
			mopts.Extra = append(mopts.Extra, client.WithTLSClientConfig(
				filepath.Join(e.tls, "ca.pem"), filepath.Join(e.tls, "cert.pem"), filepath.Join(e.tls, "key.pem")))
		}
	case "ssh":
		return connectSSH(ctx, e, opts)
	default:
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q (%s)", e.host, e.from), Rule: "an address begins with unix://, tcp:// or ssh://",
			Remedy: "name the engine's socket: unix:///var/run/docker.sock", Err: sandbox.ErrUnavailable,
		}
	}
	return open(e, mopts)
}

// open makes a client.
func open(e endpoint, opts moby.Options) (*moby.Client, error) {
	engine, err := moby.New(opts)
	if err != nil {
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q (%s)", e.host, e.from), Rule: err.Error(),
			Remedy: "see: docker context ls", Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	return engine, nil
}

// find says where the engine is, as the docker program does: an explicit address, DOCKER_HOST,
// DOCKER_CONTEXT, the context in use, the usual socket.
func find(opts Options) (endpoint, error) {
	certs := ""
	if opts.Getenv("DOCKER_TLS_VERIFY") != "" {
		certs = opts.Getenv("DOCKER_CERT_PATH")
		if certs == "" {
			certs = configDir(opts)
		}
	}
	if opts.Host != "" {
		return endpoint{opts.Host, "configuration", certs}, nil
	}
	if host := opts.Getenv("DOCKER_HOST"); host != "" {
		return endpoint{host, "DOCKER_HOST", certs}, nil
	}
	name, from := opts.Getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	if name == "" {
		var err error
		if name, err = currentContext(opts); err != nil {
			return endpoint{}, err
		}
		from = "the docker context in use"
	}
	if name == "" || name == "default" {
		return usualSocket(opts), nil
	}
	return contextEndpoint(opts, name, from)
}

// usualSocket is the engine's socket where nothing is configured: the system's, or that of a rootless
// engine of this user.
func usualSocket(opts Options) endpoint {
	const system = "/var/run/docker.sock"
	if _, err := os.Stat(system); errors.Is(err, fs.ErrNotExist) {
		if dir := opts.Getenv("XDG_RUNTIME_DIR"); dir != "" {
			own := filepath.Join(dir, "docker.sock")
			if _, err := os.Stat(own); err == nil {
				return endpoint{"unix://" + own, "XDG_RUNTIME_DIR", ""}
			}
		}
	}
	return endpoint{"unix://" + system, "the usual socket", ""}
}

// configDir is where the docker program keeps its configuration.
func configDir(opts Options) string {
	if dir := opts.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	return filepath.Join(opts.Getenv("HOME"), ".docker")
}

// currentContext is the name of the context in use; empty for none.
func currentContext(opts Options) (string, error) {
	path := filepath.Join(configDir(opts), "config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return "", &sandbox.Problem{
			What: "docker's configuration", Rule: fmt.Sprintf("%s: %v", path, err), Remedy: "mend it, or set DOCKER_HOST",
			Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	return config.CurrentContext, nil
}

// contextEndpoint reads a context of the docker program. They are kept in directories named by the
// SHA-256 of their names.
func contextEndpoint(opts Options, name, from string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	path := filepath.Join(configDir(opts), "contexts", "meta", id, "meta.json")
	data, err := os.ReadFile(path)
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	host := meta.Endpoints["docker"].Host
	if err == nil && host == "" {
		err = errors.New("it names no docker endpoint")
	}
	if err != nil {
		return endpoint{}, &sandbox.Problem{
			What: fmt.Sprintf("docker context %q (%s)", name, from), Rule: fmt.Sprintf("it cannot be read: %v", err),
			Remedy: "see: docker context ls", Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	e := endpoint{host: host, from: fmt.Sprintf("docker context %q", name)}
	if certs := filepath.Join(configDir(opts), "contexts", "tls", id, "docker"); isDir(certs) {
		e.tls = certs
	}
	return e, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
