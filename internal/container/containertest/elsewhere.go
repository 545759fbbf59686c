package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// elsewhereVar hands the directory with the ssh program to other processes of a test.
const elsewhereVar = "BERTH_TEST_ELSEWHERE"

// elsewhereHost is what the other machine is called. The ssh program of the test knows where it is.
const elsewhereHost = "berth-elsewhere"

// sshProgram makes, in a directory, a program ssh with a configuration of the test's own: behind it is a
// real server on this machine, which runs a wrapper in place of each command if there is one. It gives
// the directory.
func sshProgram(t *testing.T, wrapper string) (dir string, server *sshtest.Server) {
	t.Helper()
	if dir := os.Getenv(elsewhereVar); dir != "" {
		return dir, nil
	}
	ssh := sshtest.Program(t, "ssh")
	server = sshtest.Start(t, sshtest.Options{MaxStartups: "200", MaxSessions: 200, ForceWrapper: wrapper})
	dir = t.TempDir()
	config := filepath.Join(dir, "config")
	text := fmt.Sprintf("Host %s\nHostName %s\nPort %d\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\nControlMaster auto\nControlPath %s/%%C\nControlPersist 30\n",
		elsewhereHost, server.Host, server.Port, server.User, server.IdentityFile, server.KnownHostsFile, dir)
	script := fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, config)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(elsewhereVar, dir)
	return dir, server
}

// getenv is the environment of a backend whose ssh is the test's.
func sshEnv(dir string) func(string) string {
	return func(name string) string {
		if name == "PATH" {
			return dir + ":" + os.Getenv("PATH")
		}
		return os.Getenv(name)
	}
}

// Elsewhere plugs the backend into the suite, with its engine on another machine: it is reached by ssh.
// The suite looks at workspaces from outside, so the volume that stands in for one is shown in its place.
// C051
func (s Subject) Elsewhere(t *testing.T) backendtest.Target {
	t.Helper()
	local := s.Address(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can show a volume in place of a workspace")
	}
	dir, _ := sshProgram(t, "")
	address := "ssh://" + elsewhereHost + strings.TrimPrefix(local, "unix://")
	target := s.Target(t)
	target.Name += "-elsewhere"
	var showing sync.Mutex
	target.Sandboxes = 4
	target.New = func(t testing.TB, o backendtest.Options) sandbox.Backend {
		b, err := s.Open(address, Options{StateDir: o.StateDir, Logger: o.Logger, Getenv: sshEnv(dir)})
		if err != nil {
			t.Fatal(err)
		}
		shown := &shown{Backend: b, t: t, socket: strings.TrimPrefix(local, "unix://"), showing: &showing}
		t.Cleanup(func() {
			hideBelow(t, filepath.Dir(filepath.Dir(o.StateDir)))
			_ = b.Close()
		})
		return shown
	}
	// Nothing of this machine can be bound there, so the program is in the image.
	target.Program = func(t testing.TB, host string, spec *sandbox.Spec) string {
		spec.Config.Image = s.imageWith(t, local, host)
		return elsewhereProgram
	}
	target.Adapt = nil
	const own = "each sandbox has a copy of the workspace, which is its own: another one neither sees it nor keeps it, and it goes with the sandbox"
	for _, check := range []string{"access/two-workspaces", "life/remove", "life/two-sessions", "setup/once"} {
		target.Waive[check] = own
	}
	for _, check := range mounting {
		target.Waive[check] = "the check mounts a file system below the workspace of this machine, of which the sandbox has a copy"
	}
	return target
}

// elsewhereProgram is where the suite's program is in its image.
const elsewhereProgram = "/opt/berth-test/testprog"

// imageWith brings an image with a program to the engine, once per content, and gives its name.
func (s Subject) imageWith(t testing.TB, address, program string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	name := "localhost/berth-test-elsewhere:" + hex.EncodeToString(sum[:6])
	engine, err := s.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if _, err := engine.Image(t.Context(), name); err == nil {
		return name
	}
	base, err := RootFS()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := addTo(base, elsewhereProgram, content)
	if err == nil {
		_, err = engine.Import(t.Context(), name, bytes.NewReader(archive))
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// addTo adds a program to a root file system.
func addTo(base []byte, path string, content []byte) ([]byte, error) {
	var r rootfs
	r.begin()
	for t := tar.NewReader(bytes.NewReader(base)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		r.add(*h, data)
	}
	r.add(tar.Header{Name: strings.TrimPrefix(filepath.Dir(path), "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	r.add(tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755}, content)
	return r.end()
}

// shown is a backend whose volumes appear on this machine in place of the workspaces they were filled
// from.
type shown struct {
	Backend
	t      testing.TB
	socket string
	// showing is held while something is mounted or taken away, by any of the backends of a suite.
	showing *sync.Mutex
}

// Ensure shows the volume of a sandbox that shows its workspace.
func (s *shown) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := s.Backend.Ensure(ctx, spec)
	if err != nil {
		return nil, err
	}
	info := sb.Info()
	s.showing.Lock()
	defer s.showing.Unlock()
	if spec.Config.Access == sandbox.AccessNone || mounted(info.Workspace) {
		return sb, nil
	}
	from, err := mountpoint(ctx, s.socket, info.Runtime["volume"])
	if err == nil {
		err = unix.Mount(from, info.Workspace, "", unix.MS_BIND, "")
	}
	if err != nil {
		return nil, errors.Join(err, sb.Close())
	}
	return sb, nil
}

// Remove hides the volume that is removed.
func (s *shown) Remove(ctx context.Context, id sandbox.ID) error {
	workspace := ""
	if infos, err := s.List(ctx); err == nil {
		for _, i := range infos {
			if i.ID == id {
				workspace = i.Workspace
			}
		}
	}
	err := s.Backend.Remove(ctx, id)
	s.showing.Lock()
	defer s.showing.Unlock()
	if err == nil && workspace != "" && mounted(workspace) {
		err = unix.Unmount(workspace, unix.MNT_DETACH)
	}
	return err
}

// mountpoint is where an engine of this machine keeps a volume.
func mountpoint(ctx context.Context, socket, volume string) (string, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v1.40/volumes/"+volume, nil)
	if err != nil {
		return "", err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	var v struct{ Mountpoint string }
	if err := field(string(body), &v); err != nil {
		return "", err
	}
	if v.Mountpoint == "" {
		return "", fmt.Errorf("volume %q: %s", volume, body)
	}
	return v.Mountpoint, nil
}

// mounts are the places of this machine where something is mounted.
func mounts() []string {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	var places []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			places = append(places, fields[4])
		}
	}
	return places
}

func mounted(place string) bool { return slices.Contains(mounts(), place) }

// hideBelow takes away what is mounted below a directory.
func hideBelow(t testing.TB, dir string) {
	for _, place := range mounts() {
		if strings.HasPrefix(place, dir+"/") {
			if err := unix.Unmount(place, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", place, err)
			}
		}
	}
}
