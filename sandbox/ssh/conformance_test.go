package ssh

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// What processes of the suite are told by the first one.
const (
	suiteConfigVar = "BERTH_TEST_SSH_CONFIG"
	helperVar      = "BERTH_TEST_HELPER"
)

// helperPath is the helper under test.
var helperPath string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if p := os.Getenv(helperVar); p != "" { // a process of the suite
		helperPath = p
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "berth-sshsuite-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	helperPath = filepath.Join(dir, "berth-guest")
	build := exec.Command("go", "build", "-o", helperPath, "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	if err := os.Setenv(helperVar, helperPath); err != nil {
		panic(err)
	}
	return m.Run()
}

// sshConfig writes an SSH configuration for a server, with the alias "host". It is a file
// of the test, so that no setting of the user counts.
func sshConfig(t testing.TB, s *sshtest.Server, lines ...string) string {
	t.Helper()
	path := filepath.Join(s.Dir, fmt.Sprintf("config-%d", len(lines)))
	if err := os.WriteFile(path, []byte(s.ConfigText("host", lines...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownCache keeps the helper of a test out of the real cache of the user that runs it.
func ownCache(t testing.TB, opts sshtest.Options) sshtest.Options {
	t.Helper()
	if opts.Account == nil && !opts.Dropbear {
		opts.ExtraConfig = append(opts.ExtraConfig, "SetEnv XDG_CACHE_HOME="+t.TempDir())
	}
	return opts
}

// helperFor gives the helper under test to hosts like this machine, and none to others.
func helperFor(arch string) (helperbin.Helper, error) {
	if arch != runtime.GOARCH {
		return helperbin.Helper{}, fmt.Errorf("no helper for %s in tests", arch)
	}
	return helperbin.For("linux", arch, helperbin.Options{Env: func(name string) string {
		if name == helperbin.EnvPath {
			return helperPath
		}
		return ""
	}})
}

// open opens the backend under test.
func open(t testing.TB, state string, log *slog.Logger) *Backend {
	t.Helper()
	b, err := New(Options{StateDir: state, Helper: helperFor, Getenv: func(string) string { return "" }, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const waivedUmask = "the mask is that of the account's login, not this process's"

// suiteConfig is the configuration for the server of the suite: the one that was started by
// the first process, for the other processes of the suite as well.
func suiteConfig(t *testing.T) string {
	t.Helper()
	if c := os.Getenv(suiteConfigVar); c != "" {
		return c
	}
	c := sshConfig(t, sshtest.Start(t, ownCache(t, sshtest.Options{MaxStartups: "200"})))
	t.Setenv(suiteConfigVar, c)
	return c
}

// The suite, over OpenSSH to the account that runs the tests.
func TestConformance(t *testing.T) { runSuite(t, suiteConfig(t)) }

func runSuite(t *testing.T, config string) {
	t.Helper()
	backendtest.Run(t, backendtest.Target{
		Name: Name, Remote: true,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend { return open(t, o.StateDir, o.Logger) },
		Adapt: func(_ testing.TB, spec *sandbox.Spec) {
			backendtest.Unconfined(&spec.Config, DefaultConfig())
			spec.Config.SSH, spec.Config.SSHConfig = "host", config
		},
		Waive: map[string]string{
			"bridge/mode/umask-002": waivedUmask, "bridge/mode/umask-077": waivedUmask,
		},
	})
}
