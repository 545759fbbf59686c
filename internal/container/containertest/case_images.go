package containertest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
)

// of uses an image.
func of(image string) func(*sandbox.Config) { return func(c *sandbox.Config) { c.Image = image } }

// containers lists those that show a workspace of the test.
func (k *kit) containers() []container.Container {
	k.Helper()
	all, err := k.engine.List(k.ctx, nil)
	k.must(err)
	var out []container.Container
	for _, c := range all {
		if strings.HasPrefix(c.Labels["io.workberth.workspace"], k.dir) {
			out = append(out, c)
		}
	}
	return out
}

// caseDiesAtOnce: a container that ends at once is an error with its exit code and last lines, soon,
// and leaves no container. One that was there before stays, with its files. C055
func caseDiesAtOnce(k *kit) {
	helper := os.Getenv(helperbin.EnvPath)
	dying, err := exec.LookPath("busybox") // under another name it says that it does not know it, and ends
	k.must(err)
	missing, err := exec.LookPath("ls") // its libraries are not in the image
	k.must(err)
	fail := func(state, program string, words ...string) {
		k.Helper()
		k.Setenv(helperbin.EnvPath, program)
		b := k.open(state)
		k.within(20*time.Second, "the failure", func() {
			_, err := b.Ensure(k.ctx, k.spec())
			k.refused(err, sandbox.ErrUnavailable, words...)
		})
	}
	fail("new", dying, "exit code 127", "applet not found")
	fail("new", missing, "o such file")
	if left := k.containers(); len(left) != 0 {
		k.Errorf("left behind: %+v", left)
	}
	// A sandbox that worked before.
	k.Setenv(helperbin.EnvPath, helper)
	root, err := layer(true)
	k.must(err)
	image := k.image(root, nil)
	writable := func(c *sandbox.Config) { c.ReadOnlyRoot, c.Image = false, image }
	sb := k.ensure(k.b, writable)
	k.wantOutput(sb, "echo kept > /vol/f; echo on", "on")
	k.must(sb.Close())
	k.Setenv(helperbin.EnvPath, dying)
	_, err = k.open("state").Ensure(k.ctx, k.spec(writable))
	k.refused(err, sandbox.ErrUnavailable, "exit code 127", "applet not found")
	k.Setenv(helperbin.EnvPath, helper)
	k.wantOutput(k.ensure(k.open("state"), writable), "cat /vol/f", "kept")
}

// caseImageWishes: what an image declares does not change what runs, as whom, where, and what it may
// write; its PATH and variables are those of the commands, and its profile is read by nobody. C055 C111
func caseImageWishes(k *kit) {
	root, err := layer(true, files(map[string]string{
		"opt/t/mytool": "#!/bin/sh\necho mine\n", "etc/profile": "export PATH=/absent\n", "vol/f": "of the image",
	}))
	k.must(err)
	name := k.image(root, wishes{
		"Entrypoint": []string{"/bin/false"}, "Cmd": []string{"of-the-image"}, "User": "77:78", "WorkingDir": "/made/by/image",
		"Volumes":     map[string]any{"/vol": map[string]any{}, "/tmp": map[string]any{}, "/workspace": map[string]any{}, "/run/berth": map[string]any{}},
		"Healthcheck": map[string]any{"Test": []string{"CMD", "/bin/touch", "/workspace/probed"}, "Interval": 1_000_000_000},
		"OnBuild":     []string{"RUN false"}, "StopSignal": "SIGUSR1", "ExposedPorts": map[string]any{"80/tcp": map[string]any{}},
		"Env": []string{
			"PATH=/opt/t:/bin", "FROM_IMAGE=a\nb", "HOME=/vol", "USER=image", "ENV=/etc/profile", "GOMEMLIMIT=1", "GOGC=1", "GODEBUG=gctrace=1",
			"LD_PRELOAD=/vol/f", "TERM=of-the-image",
		},
		"Labels": map[string]string{"io.workberth.sandbox": "docker-0000000000000000", "io.workberth.state": "x", "io.workberth.config": "x"},
	})
	sb := k.ensure(k.b, of(name))
	c := k.containerOf(sb)
	if c.Labels["io.workberth.sandbox"] != string(sb.Info().ID) || c.Labels["io.workberth.config"] == "x" {
		k.Errorf("labels %v", c.Labels)
	}
	k.wantOutput(sb, "echo $(id -u):$(id -g); pwd", sb.Info().Runtime["user"]+"\n/workspace")
	k.wantOutput(sb, "mytool; echo $PATH; echo $HOME; [ $USER != image ] && echo \"$FROM_IMAGE\"", "mine\n/opt/t:/bin\n/tmp/home\na\nb")
	k.wantOutput(sb, "cat /vol/f; touch /vol/g 2>/dev/null && echo wrote", "of the image")
	k.wantOutput(sb, "touch here; ls", "here")
	if info, err := os.Stat(filepath.Join(k.ws, "here")); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		k.Errorf("what it has written: %+v, %v", info, err)
	}
	var state struct {
		Config struct{ Healthcheck struct{ Test []string } }
		State  struct{ Health *struct{ Status string } }
	}
	k.must(field(k.inspect(c.ID), &state))
	if h := state.State.Health; h != nil && h.Status != "" && h.Status != "none" && h.Status != "healthy" && h.Status != "unhealthy" {
		k.Errorf("the engine probes it: %+v", h)
	}
	if _, err := os.Stat(filepath.Join(k.ws, "probed")); err == nil {
		k.Error("the image's probe has run in the workspace")
	}
	// The command's own PATH wins; what is outside of it is not found.
	_, err = sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"mytool"}}, sandbox.Env{"PATH": "/bin"}, sandbox.RunOptions{})
	var start *sandbox.StartError
	if !errors.As(err, &start) || start.Reason != sandbox.StartNoCommand {
		k.Errorf("a tool outside PATH: %v", err)
	}
}

// caseImageCovers: an image that declares a volume in the workspace would hide a directory of the
// user's, and have one made as root; it does neither. C045 C055
func caseImageCovers(k *kit) {
	root, err := layer(true)
	k.must(err)
	name := k.image(root, wishes{"Volumes": map[string]any{"/workspace/mine": map[string]any{}, "/workspace/new": map[string]any{}}})
	k.must(os.Mkdir(filepath.Join(k.ws, "mine"), 0o755))
	k.must(os.WriteFile(filepath.Join(k.ws, "mine", "f"), []byte("of the user"), 0o644))
	sb, err := k.b.Ensure(k.ctx, k.spec(of(name)))
	if err != nil {
		k.refused(err, sandbox.ErrRefused, "/workspace/", "volume")
		if left := k.containers(); len(left) != 0 {
			k.Errorf("left behind: %+v", left)
		}
	} else {
		defer sb.Close()
		k.wantOutput(sb, "cat mine/f; touch mine/g; ls mine", "of the userf\ng")
	}
	if _, err := os.Stat(filepath.Join(k.ws, "new")); err == nil {
		k.Error("a directory was made in the workspace for the image")
	}
}

// caseImageMoved: a sandbox whose image has another content by now, or is not there any more, is used
// again with what it was made of, and says so. C053
func caseImageMoved(k *kit) {
	rootOf := func(word string) []byte {
		root, err := layer(true, files(map[string]string{"etc/word": word}))
		k.must(err)
		return root
	}
	first := wishes{"Env": []string{"PATH=/bin", "WORD=first"}}
	name := k.image(rootOf("first"), first)
	sb := k.ensure(k.b, of(name))
	c := k.containerOf(sb)
	k.wantOutput(sb, "cat /etc/word; echo; echo $WORD", "first\nfirst")
	k.must(sb.Close())
	again := func(what string) {
		k.Helper()
		sb := k.ensure(k.b, of(name))
		if got := k.containerOf(sb); got.ID != c.ID || sb.Info().Runtime["imageId"] != c.ImageID {
			k.Errorf("%s: container %s of image %s, was %s of %s", what, got.ID, sb.Info().Runtime["imageId"], c.ID, c.ImageID)
		}
		k.wantOutput(sb, "cat /etc/word; echo; echo $WORD", "first\nfirst")
		k.must(sb.Close())
	}
	k.load(name, rootOf("second"), wishes{"Env": []string{"PATH=/absent", "WORD=second"}})
	again("the name is of another image")
	k.untag(k.ctx, name)
	again("the image has lost its name")
	k.load(name, rootOf("second"), wishes{"Env": []string{"PATH=/bin", "WORD=second"}})
	k.must(k.b.Remove(k.ctx, sb.Info().ID))
	k.wantOutput(k.ensure(k.b, of(name)), "cat /etc/word; echo; echo $WORD", "second\nsecond")
}

// everyOperation uses a bridge in every way that the suite for bridges knows in depth.
func (k *kit) everyOperation(sb sandbox.Sandbox) {
	k.Helper()
	br, err := sb.Bridge(k.ctx, nil)
	k.must(err)
	_, streamed := fsbridge.WriteStream(k.ctx, br, "streamed", strings.NewReader("x"), fsbridge.WriteOptions{Mode: 0o600})
	_, listed := fsbridge.ReadDirectory(k.ctx, br, ".")
	_, hashed := fsbridge.HashFile(k.ctx, br, "streamed")
	part, ranged := fsbridge.ReadRange(k.ctx, br, "streamed", 0, 1)
	if string(part) != "x" {
		k.Errorf("read %q", part)
	}
	for what, err := range map[string]error{"stream": streamed, "list": listed, "hash": hashed, "range": ranged} {
		if err != nil {
			k.Errorf("%s: %v", what, err)
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"write", func() error { return br.WriteFile(k.ctx, "d/f", []byte("1")) }},
		{"mkdir", func() error { return fsbridge.Mkdir(k.ctx, br, "e/g", fsbridge.MkdirOptions{Parents: true}) }},
		{"append", func() error { return fsbridge.AppendFile(k.ctx, br, "d/f", []byte("2")) }},
		{"create", func() error { return fsbridge.CreateFileExclusive(k.ctx, br, "e/new", nil) }},
		{"rename", func() error { return fsbridge.Rename(k.ctx, br, "d/f", "e/g/f", fsbridge.RenameOptions{}) }},
		{"copy", func() error { return fsbridge.Copy(k.ctx, br, "e/g/f", "d/h", fsbridge.CopyOptions{}) }},
		{"chmod", func() error { return fsbridge.Chmod(k.ctx, br, "d/h", 0o640) }},
		{"link", func() error { return fsbridge.Symlink(k.ctx, br, "h", "d/l", fsbridge.SymlinkOptions{}) }},
		{"remove", func() error { return fsbridge.Remove(k.ctx, br, "e", fsbridge.RemoveOptions{Recursive: true}) }},
	} {
		if err := step.do(); err != nil {
			k.Errorf("%s: %v", step.what, err)
		}
	}
	if got, err := br.ReadFile(k.ctx, "d/l"); err != nil || string(got) != "12" {
		k.Errorf("read %q, %v", got, err)
	}
}

// caseNoShell: files need no program of the image's; what does is told by its name. C059
func caseNoShell(k *kit) {
	root, err := layer(false)
	k.must(err)
	name := k.image(root, nil)
	sb := k.ensure(k.b, of(name))
	k.everyOperation(sb)
	_, err = sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "true"}}, nil, sandbox.RunOptions{})
	var start *sandbox.StartError
	if !errors.As(err, &start) || start.Reason != sandbox.StartNoCommand || !strings.Contains(err.Error(), "/bin/sh") {
		k.Errorf("no shell: %v", err)
	}
	// Who needs one is told at the start.
	_, err = k.b.Ensure(k.ctx, k.spec(of(name), func(c *sandbox.Config) { c.SetupCommand = "true" }))
	var p *sandbox.Problem
	if !errors.As(err, &p) || p.Field != "setupCommand" || !strings.Contains(explain(err), "/bin/sh") {
		k.Errorf("a setup command without a shell: %v", err)
	}
}

// caseOddShell: no operation on files, and no command that names none, depends on what /bin/sh is. C061
func caseOddShell(k *kit) {
	root, err := layer(false, files(map[string]string{"bin/sh": "Syntax error: \";\" unexpected\n"}))
	k.must(err)
	sb := k.ensure(k.b, of(k.image(root, wishes{"Env": []string{"SHELL=/bin/sh", "ENV=/absent", "BASH_ENV=/absent"}})))
	k.everyOperation(sb)
	res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{sandbox.HelperPath + "/berth-guest", "version"}}, nil, sandbox.RunOptions{})
	if err != nil || res.Status != (sandbox.ExitStatus{}) {
		k.Errorf("a command: %+v, %v", res.Status, err)
	}
}
