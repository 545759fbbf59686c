package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/asuser"
	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
)

// Image is what the tests run: the busybox of this machine, and nothing else.
const Image = "localhost/berth-test-busybox:1"

// Subject is a backend under test.
type Subject struct {
	// Name is the backend's, or one for this engine of it.
	Name string
	// Var is the environment variable that names the engine to test with.
	Var string
	// BlindToMounts: the engine does not see what is mounted on this machine after its start.
	BlindToMounts bool
	// Open opens the backend for the engine at an address.
	Open func(address string, o Options) (Backend, error)
	// Connect opens the engine itself, to do to containers what others do.
	Connect func(address string) (container.Engine, error)
}

// Options is what a backend is opened with.
type Options struct {
	StateDir string
	Logger   *slog.Logger
	// Getenv is nil for the environment of the process.
	Getenv func(string) string
}

// Backend is what container backends have beside the common interface.
type Backend interface {
	sandbox.Backend
	Close() error
}

// Address is that of the engine to test with. Without one the test is skipped, or fails where nothing
// may be missing.
func (s Subject) Address(t testing.TB) string {
	t.Helper()
	address := os.Getenv(s.Var)
	if address == "" {
		Need(t, s.Var+" names no engine")
	}
	return address
}

// Need skips the test where something is missing, and fails it where nothing may be.
func Need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Main is what TestMain ends the process with: it makes the guest helper, brings the image to the
// engines, and runs the tests.
func Main(m *testing.M, subjects ...Subject) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(helperbin.EnvPath) == "" {
		dir, err := os.MkdirTemp("", "container-helper-")
		if err != nil {
			return fail(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, helperbin.Name)
		// Processes of an ordinary user start it too.
		if err := errors.Join(build(path, "cmd/berth-guest"), os.Chmod(dir, 0o755), os.Setenv(helperbin.EnvPath, path)); err != nil {
			return fail(err)
		}
	}
	for _, s := range subjects {
		if address := os.Getenv(s.Var); address != "" {
			if err := s.bringImage(address); err != nil {
				return fail(fmt.Errorf("%s: %w", s.Var, err))
			}
		}
	}
	return m.Run()
}

// build builds a static program of this module.
func build(path, pkg string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/workberth/workberth/"+pkg) //nolint:noctx // short
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// bringImage imports the image, unless it is there.
func (s Subject) bringImage(address string) error {
	engine, err := s.Connect(address)
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx := context.Background()
	if _, err := engine.Image(ctx, Image); err == nil {
		return nil
	}
	rootfs, err := RootFS()
	if err != nil {
		return err
	}
	_, err = engine.Import(ctx, Image, bytes.NewReader(rootfs))
	return err
}

// RootFS is a root file system with a static busybox, as a tar archive.
func RootFS() ([]byte, error) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("%w (install busybox-static)", err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var r rootfs
	r.begin()
	add := r.add
	for _, dir := range []string{"bin", "etc", "tmp", "proc", "sys", "dev", "run", "var", "usr", "root", "home"} {
		add(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	}
	add(tar.Header{Name: "opt/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	add(tar.Header{Name: "bin/busybox", Mode: 0o755}, content)
	for _, name := range []string{"sh", "cat", "ls", "grep", "tr", "wc", "id", "sleep", "true", "echo", "ps", "mkdir", "rm", "env", "test", "dd", "kill", "mount"} {
		add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
	}
	add(tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/:/bin/sh\n"))
	return r.end()
}

// bareRootFS is a root file system with one file and no program.
func bareRootFS() ([]byte, error) {
	var r rootfs
	r.begin()
	r.add(tar.Header{Name: "data", Mode: 0o644}, []byte("of the image"))
	return r.end()
}

// rootfs is a tar archive in the making.
type rootfs struct {
	out      bytes.Buffer
	w        *tar.Writer
	failures []error
}

func (r *rootfs) begin() { r.w = tar.NewWriter(&r.out) }

func (r *rootfs) add(h tar.Header, content []byte) {
	h.Size = int64(len(content))
	r.failures = append(r.failures, r.w.WriteHeader(&h))
	_, err := r.w.Write(content)
	r.failures = append(r.failures, err)
}

func (r *rootfs) end() ([]byte, error) {
	r.failures = append(r.failures, r.w.Close())
	return r.out.Bytes(), errors.Join(r.failures...)
}

// passage makes a socket through which the ordinary user comes to an engine of root's.
func passage(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(asuser.Dir(t), "engine")
	ln, err := net.Listen("unix", path) //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	if err := os.Chown(path, asuser.UID, asuser.UID); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", strings.TrimPrefix(address, "unix://")) //nolint:noctx // it ends with the connection
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	return "unix://" + path
}

// pass copies one direction to its end.
func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(*net.UnixConn); ok {
		_ = c.CloseWrite()
	}
	if c, ok := from.(*net.UnixConn); ok {
		_ = c.CloseRead()
	}
}
