package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/workberth/workberth/internal/container/containertest"
)

// built is the directory with the programs under test.
var built string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"berth", "berth-guest"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/workberth/workberth/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
			return 1
		}
	}
	built = dir
	rootfs, err := containertest.RootFS()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "rootfs.tar"), rootfs, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
			return 1
		}
	}
	return m.Run()
}

// needBwrap skips, or fails where engines are required, when bubblewrap does not
// work here.
func needBwrap(t *testing.T) {
	t.Helper()
	out, err := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput()
	if err == nil {
		return
	}
	msg := fmt.Sprintf("bubblewrap does not work here: %v %s", err, out)
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

// TestScript runs the command line as its users do. The scripts in
// testdata/script name the rows and cases they prove.
func TestScript(t *testing.T) {
	needBwrap(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setupScript,
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     cmdCode,
			"waitgone": cmdWaitGone,
			"killpid":  cmdKillPid,
		},
	})
}

// TestContainers runs the scripts in testdata/containers with each engine.
func TestContainers(t *testing.T) {
	for backend, engine := range map[string]struct{ from, to string }{
		"docker": {"BERTH_TEST_DOCKER", "DOCKER_HOST"}, "podman": {"BERTH_TEST_PODMAN", "CONTAINER_HOST"},
	} {
		t.Run(backend, func(t *testing.T) {
			address := os.Getenv(engine.from)
			if address == "" {
				containertest.Need(t, engine.from+" names no engine")
			}
			testscript.Run(t, testscript.Params{
				Dir:                 "testdata/containers",
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("BERTH_BACKEND", backend)
					env.Setenv(engine.to, address)
					env.Setenv("ROOTFS", filepath.Join(built, "rootfs.tar"))
					return setupScript(env)
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": cmdCode},
			})
		})
	}
}

// setupScript gives a script a home, private state, and ends its sandboxes.
func setupScript(env *testscript.Env) error {
	run, err := os.MkdirTemp("", "bt-") // short: a socket's path is bounded
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	ws := filepath.Join(env.WorkDir, "ws")
	for _, d := range []string{home, ws} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	env.Setenv("BERTH_STATE_DIR", filepath.Join(run, "state"))
	env.Setenv("BERTH_RUNTIME_DIR", filepath.Join(run, "run"))
	env.Setenv("RUN", run)
	env.Setenv("WS", ws)
	env.Setenv("BIN", built)
	env.Setenv("PATH", built+string(os.PathListSeparator)+os.Getenv("PATH"))
	env.Cd = ws
	vars := append([]string(nil), env.Vars...)
	env.Defer(func() {
		stopAll(vars)
		os.RemoveAll(run)
	})
	return nil
}

// stopAll ends what the script left running.
func stopAll(vars []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ls := exec.CommandContext(ctx, filepath.Join(built, "berth"), "sandbox", "ls")
	ls.Env = vars
	out, _ := ls.Output() // what it could list is enough
	for _, line := range strings.Split(string(out), "\n")[1:] {
		if f := strings.Fields(line); len(f) > 0 {
			stop := exec.CommandContext(ctx, filepath.Join(built, "berth"), "sandbox", "rm", f[0])
			stop.Env = vars
			_ = stop.Run() // the directory is removed next
		}
	}
}

// cmdCode runs "code N command...": the command must end with exit code N.
// Its output is left for stdout and stderr.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [arg...]")
	}
	cmd := exec.Command(args[1], args[2:]...)
	if p := filepath.Join(built, args[1]); args[1] == "berth" {
		cmd.Path, cmd.Err = p, nil
	}
	cmd.Dir = ts.Getenv("PWD")
	if cmd.Dir == "" {
		cmd.Dir = ts.MkAbs(".")
	}
	cmd.Env = scriptEnv(ts)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s (%v)\nstdout: %s\nstderr: %s", got, args[0], err, &stdout, &stderr)
	}
}

// scriptEnv is the script's environment.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, k := range []string{"HOME", "XDG_CONFIG_HOME", "BERTH_STATE_DIR", "BERTH_RUNTIME_DIR", "BERTH_BACKEND", "DOCKER_HOST", "CONTAINER_HOST", "BERTH_GUEST", "PATH", "WS", "RUN", "BIN", "TERM", "LANG", "NO_COLOR"} {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// cmdKillPid runs "killpid FILE": SIGKILL to the process whose id is in FILE.
func cmdKillPid(ts *testscript.TestScript, _ bool, args []string) {
	var pid int
	if _, err := fmt.Sscan(strings.TrimSpace(ts.ReadFile(args[0])), &pid); err != nil || pid <= 1 {
		ts.Fatalf("no process id in %s: %v", args[0], err)
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

// cmdWaitGone runs "waitgone WORD": waits until no process of this machine has
// WORD among its arguments.
func cmdWaitGone(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		found := ""
		procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
		ts.Check(err)
		for _, p := range procs {
			data, err := os.ReadFile(p)
			if err == nil && hasWord(string(data), args[0]) {
				found = p + ": " + strings.ReplaceAll(string(data), "\x00", " ")
			}
		}
		if found == "" {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s still runs: %s", args[0], found)
		}
		time.Sleep(20 * time.Millisecond) // sleep: the process table gives no event
	}
}

// hasWord reports whether a word is in a text, and not only a part of another word.
func hasWord(text, word string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), word)
}
