package backendtest

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func execChecks() []check {
	return []check{
		{name: "arguments", run: execArguments},
		{name: "environment", rows: []string{"C071"}, run: execEnvironment},
		{name: "layers", rows: []string{"C071"}, run: execLayers},
		{name: "bad-environment", run: execBadEnvironment},
		{name: "path", rows: []string{"C111"}, run: execPath},
		{name: "cannot-start", rows: []string{"C081", "C073"}, run: execCannotStart},
		{name: "directory", rows: []string{"C081"}, run: execDirectory},
		{name: "default-directory", rows: []string{"C081"}, run: execDefaultDirectory},
	}
}

// execArguments hands over every byte of every argument.
func execArguments(k *kit) {
	x := k.ensure()
	var all strings.Builder
	for b := 1; b < 256; b++ {
		all.WriteByte(byte(b))
	}
	args := []string{
		"", " ", "a b", `"`, `'`, `\`, "$HOME", "`id`", "$(id)", "*", "~", "-n", "--", "a\nb", "\n", "\t", "é", "\xff\xfe", "|;&<>", "%s", "a=b",
		strings.Repeat("x", 100_000), all.String(), "",
	}
	got := decodeArgs(k, x.run(append([]string{"args"}, args...)...))
	if !slices.Equal(got, args) {
		k.Errorf("arguments\n got %q\nwant %q", got, args)
	}
}

// variables reads the output of the role "env".
func variables(out string) sandbox.Env {
	env := sandbox.Env{}
	for v := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

// execEnvironment hands over every byte of every value.
func execEnvironment(k *kit) {
	x := k.ensure()
	want := sandbox.Env{
		"K": "-----A\nB\nC-----\n", "E": "", "Q": "a\"b'c$HOME`id`", "U": "é\xff", "S": "  x  ", "P": "a=b=c", "N": "\n", "T": "\t\r",
		"LONG": strings.Repeat("long ", 20000), "lower_case": "1", "BASH_FUNC_x%%": "() { :; }", "with.dot-and-dash": "1",
	}
	got := variables(x.output(x.role("env"), want))
	for name, value := range want {
		if g, ok := got[name]; !ok || g != value {
			k.Errorf("%s = %.80q (%t), want %.80q", name, g, ok, value)
		}
	}
}

// execLayers: the command's own environment wins over the configuration's, and nothing of this
// process's comes in where commands are confined.
func execLayers(k *kit) {
	k.Setenv("BERTH_SUITE_CANARY", "outside")
	x := k.ensure(func(s *sandbox.Spec) {
		s.Config.Env = map[string]string{"BOTH": "configured", "CONFIGURED": "multi\nline"}
	})
	got := variables(x.output(x.role("env"), sandbox.Env{"BOTH": "own", "OWN": "1"}))
	for name, value := range map[string]string{"BOTH": "own", "CONFIGURED": "multi\nline", "OWN": "1"} {
		if got[name] != value {
			k.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	if got["PATH"] == "" {
		k.Error("no PATH")
	}
	if k.features.Confined && got["BERTH_SUITE_CANARY"] != "" {
		k.Error("the environment of this process came in")
	}
}

// execBadEnvironment: names that the kernel cannot carry are refused, not bent.
func execBadEnvironment(k *kit) {
	x := k.ensure()
	for what, env := range map[string]sandbox.Env{
		"empty name": {"": "x"}, "name with =": {"A=B": "x"}, "NUL in name": {"A\x00": "x"}, "NUL in value": {"A": "x\x00y" + secretValue},
		"too long": {"A": strings.Repeat("x", 1<<20)},
	} {
		_, err := sandbox.Run(k.ctx, x.Sandbox, x.role("env"), env, sandbox.RunOptions{})
		if err == nil {
			k.Errorf("%s: accepted", what)
		} else if strings.Contains(err.Error(), secretValue) {
			k.Errorf("%s: the error shows the value", what)
		}
		if n := x.OpenTokens(); n != 0 {
			k.Errorf("%s: %d open tokens", what, n)
		}
	}
}

// tool puts a copy of the suite's program into the workspace.
func (k *kit) tool(rel string) {
	k.Helper()
	host := filepath.Join(k.ws, rel)
	k.must(os.MkdirAll(filepath.Dir(host), 0o755))
	data, err := os.ReadFile(k.prog)
	k.must(err)
	k.must(os.WriteFile(host, data, 0o755))
}

// execPath: the PATH that is given is the one that is searched and the one that is seen.
func execPath(k *kit) {
	x := k.ensure()
	k.tool("t/bin/mytool")
	given := x.inside("t/bin") + ":/usr/bin:/bin"
	cmd := sandbox.Command{Argv: []string{"mytool", "env"}}
	if got := variables(x.output(cmd, sandbox.Env{"PATH": given})); got["PATH"] != given {
		k.Errorf("PATH = %q, given was %q", got["PATH"], given)
	}
	for name, env := range map[string]sandbox.Env{"without": nil, "empty element": {"PATH": "/absent::/absent"}} {
		_, err := sandbox.Run(k.ctx, x.Sandbox, cmd, env, sandbox.RunOptions{})
		var se *sandbox.StartError
		if !errors.As(err, &se) || se.Reason != sandbox.StartNoCommand {
			k.Errorf("%s the directory on PATH: %v", name, err)
		}
	}
	// By a relative path it is found below the working directory, and not on PATH.
	cmd = sandbox.Command{Argv: []string{"./mytool", "pwd"}, Dir: "t/bin"}
	if got := x.output(cmd, nil); got != x.inside("t/bin") {
		k.Errorf("./mytool wrote %q", got)
	}
	cmd.Dir = ""
	if _, err := sandbox.Run(k.ctx, x.Sandbox, cmd, sandbox.Env{"PATH": given}, sandbox.RunOptions{}); err == nil {
		k.Error("./mytool was found on PATH")
	}
}

// execCannotStart: what is missing is told, in different ways, and nothing runs.
func execCannotStart(k *kit) {
	x := k.ensure()
	k.tool("notexec")
	k.must(os.Chmod(filepath.Join(k.ws, "notexec"), 0o644))
	k.must(os.WriteFile(filepath.Join(k.ws, "badformat"), []byte("\x7fELFnot really"), 0o755))
	k.must(os.WriteFile(filepath.Join(k.ws, "nointerpreter"), []byte("#!/absent/interpreter\n"), 0o755))
	k.must(os.MkdirAll(filepath.Join(k.ws, "dir"), 0o755))
	k.must(os.Symlink("absent", filepath.Join(k.ws, "dangling")))
	ok := x.prog
	touch := func(dir string) sandbox.Command {
		return sandbox.Command{Argv: []string{ok, "write", "ran.here", "x"}, Dir: dir}
	}
	for name, tc := range map[string]struct {
		cmd     sandbox.Command
		reasons []sandbox.StartReason
	}{
		"missing on PATH":      {sandbox.Command{Argv: []string{"absent-" + k.word}}, []sandbox.StartReason{sandbox.StartNoCommand}},
		"missing by path":      {sandbox.Command{Argv: []string{"/absent/" + k.word}}, []sandbox.StartReason{sandbox.StartNoCommand}},
		"dangling link":        {sandbox.Command{Argv: []string{x.inside("dangling")}}, []sandbox.StartReason{sandbox.StartNoCommand}},
		"below a file":         {sandbox.Command{Argv: []string{x.inside("notexec/x")}}, []sandbox.StartReason{sandbox.StartNoCommand, sandbox.StartNotExecutable}},
		"not executable":       {sandbox.Command{Argv: []string{x.inside("notexec")}}, []sandbox.StartReason{sandbox.StartNotExecutable}},
		"a directory":          {sandbox.Command{Argv: []string{x.inside("dir")}}, []sandbox.StartReason{sandbox.StartNotExecutable}},
		"bad format":           {sandbox.Command{Argv: []string{x.inside("badformat")}}, []sandbox.StartReason{sandbox.StartNotExecutable}},
		"missing interpreter":  {sandbox.Command{Argv: []string{x.inside("nointerpreter")}}, []sandbox.StartReason{sandbox.StartNotExecutable, sandbox.StartNoCommand}},
		"empty name":           {sandbox.Command{Argv: []string{""}}, []sandbox.StartReason{sandbox.StartBadSpec, sandbox.StartNoCommand}},
		"argument too long":    {sandbox.Command{Argv: []string{ok, "args", strings.Repeat("x", 1<<20)}}, []sandbox.StartReason{sandbox.StartBadSpec, sandbox.StartLimitReached}},
		"directory missing":    {touch("missing"), []sandbox.StartReason{sandbox.StartNoDirectory}},
		"directory absolute":   {touch("/absent"), []sandbox.StartReason{sandbox.StartNoDirectory, sandbox.StartOutsideDir}},
		"directory is a file":  {touch("notexec"), []sandbox.StartReason{sandbox.StartNotDirectory}},
		"directory dangling":   {touch("dangling"), []sandbox.StartReason{sandbox.StartNoDirectory}},
		"directory by tilde":   {touch("~/proj"), []sandbox.StartReason{sandbox.StartNoDirectory, sandbox.StartBadSpec}},
		"directory is tilde":   {touch("~"), []sandbox.StartReason{sandbox.StartNoDirectory, sandbox.StartBadSpec}},
		"directory above root": {touch("../../../../../absent"), []sandbox.StartReason{sandbox.StartNoDirectory, sandbox.StartOutsideDir}},
	} {
		_, err := sandbox.Run(k.ctx, x.Sandbox, tc.cmd, nil, sandbox.RunOptions{})
		var se *sandbox.StartError
		if !errors.As(err, &se) || !slices.Contains(tc.reasons, se.Reason) {
			k.Errorf("%s: %v; want a StartError %v", name, err, tc.reasons)
			continue
		}
		if se.What == "" || strings.Contains(se.Error(), "\n") {
			k.Errorf("%s: %q names nothing, or has several lines", name, se.Error())
		}
		if n := x.OpenTokens(); n != 0 {
			k.Errorf("%s: %d open tokens", name, n)
		}
	}
	k.nothingRan()
	x.works()
}

// nothingRan demands that no command made "ran.here", anywhere.
func (k *kit) nothingRan() {
	k.Helper()
	err := filepath.WalkDir(k.dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == "ran.here" {
			k.Errorf("a command ran in another directory: %s", p)
		}
		return nil
	})
	k.must(err)
}

// execDirectory: a command runs where it was told to, or not at all.
func execDirectory(k *kit) {
	x := k.ensure()
	odd := " odd\n-'\"\xff"
	for _, dir := range []string{"a/b", odd, "gone"} {
		k.must(os.MkdirAll(filepath.Join(k.ws, dir), 0o755))
	}
	k.must(os.Symlink("a/b", filepath.Join(k.ws, "link")))
	k.must(os.Symlink(x.inside("a/b"), filepath.Join(k.ws, "absolute")))
	for dir, want := range map[string]string{
		"": x.root, ".": x.root, "a": x.inside("a"), "a/b/": x.inside("a/b"), "a/../a/./b": x.inside("a/b"), odd: x.inside(odd),
		x.root: x.root, x.inside("a"): x.inside("a"), "link": x.inside("a/b"), "absolute": x.inside("a/b"), "link/..": x.inside("a"),
	} {
		cmd := x.role("pwd")
		cmd.Dir = dir
		res, err := sandbox.Run(k.ctx, x.Sandbox, cmd, nil, sandbox.RunOptions{})
		if got := string(res.Stdout.Bytes()); err != nil || got != want {
			k.Errorf("in %q: %q, %v; want %q", dir, got, err, want)
		}
	}
	// A directory that leads away is refused; where it is a place that commands may be in,
	// the command is really there.
	k.must(os.Symlink("/", filepath.Join(k.ws, "away")))
	for _, dir := range []string{x.inside(".."), "..", "away", "a/../..", "/"} {
		cmd := x.role("pwd")
		cmd.Dir = dir
		res, err := sandbox.Run(k.ctx, x.Sandbox, cmd, nil, sandbox.RunOptions{})
		var se *sandbox.StartError
		switch got := string(res.Stdout.Bytes()); {
		case err == nil && (got == x.root || !path.IsAbs(got) || strings.HasPrefix(got, x.root+"/")):
			k.Errorf("in %q: ran in %q", dir, got)
		case err != nil && (!errors.As(err, &se) || se.Reason != sandbox.StartOutsideDir):
			k.Errorf("in %q: %v", dir, err)
		}
	}
	// A directory that goes away between spec and launch.
	cmd := x.role("write", "ran.here", "x")
	cmd.Dir = "gone"
	spec, err := x.BuildExecSpec(k.ctx, cmd, nil)
	k.must(err)
	k.must(os.Remove(filepath.Join(k.ws, "gone")))
	if _, _, err := x.spawn(spec); err == nil {
		k.Error("ran in a directory that was gone")
	}
	k.nothingRan()
}

// execDefaultDirectory: the configured directory, relative and absolute.
func execDefaultDirectory(k *kit) {
	k.must(os.MkdirAll(filepath.Join(k.ws, "sub/dir"), 0o755))
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Workdir = "sub/dir" })
	if got := x.run("pwd"); got != x.inside("sub/dir") {
		k.Errorf("ran in %q, configured is sub/dir of %q", got, x.root)
	}
	if got := x.Info().Workdir; got != x.inside("sub/dir") {
		k.Errorf("Info.Workdir = %q", got)
	}
	// The directory of a command is relative to the workspace all the same.
	cmd := x.role("pwd")
	cmd.Dir = "sub"
	if got := x.output(cmd, nil); got != x.inside("sub") {
		k.Errorf("ran in %q, asked for sub of the workspace", got)
	}
	y := k.ensure(func(s *sandbox.Spec) { s.Config.Workdir = x.inside("sub") })
	if got := y.run("pwd"); got != x.inside("sub") {
		k.Errorf("ran in %q, configured is %q", got, x.inside("sub"))
	}
	z := k.ensure(func(s *sandbox.Spec) { s.Config.Workdir = "absent" })
	cmd = z.role("write", "ran.here", "x")
	var se *sandbox.StartError
	if _, err := sandbox.Run(k.ctx, z.Sandbox, cmd, nil, sandbox.RunOptions{}); !errors.As(err, &se) || se.Reason != sandbox.StartNoDirectory {
		k.Errorf("a configured directory that is missing: %v", err)
	}
	k.nothingRan()
}
