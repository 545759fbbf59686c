package container

import (
	"errors"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// An image that declares a volume inside of a directory of this machine is refused; one at the place
// of a mount, in memory, or elsewhere is not. C045 C055
func TestVolumesInMounts(t *testing.T) {
	mounts := []Mount{{Target: "/workspace", Source: "/ws"}, {Target: "/tmp"}, {Target: "/workspace/cache"}, {Target: "/run/berth", Source: "/g"}}
	for place, refused := range map[string]bool{
		"/workspace": false, "/workspace/": false, "/workspace/x": true, "workspace/x": true, "/workspace/../workspace/x": true, "/workspace/../x": false,
		"/workspaces": false, "/tmp/x": false, "/workspace/cache": false, "/workspace/cache/x": false, "/run": false, "/run/berth/x": true, "/": false, "/data": false,
	} {
		p := &plan{image: Image{Volumes: []string{"/other", place}}, spec: Spec{Mounts: mounts}}
		err := p.checkVolumes("img")
		var problem *sandbox.Problem
		if refused != (err != nil) || refused && (!errors.As(err, &problem) || !errors.Is(err, sandbox.ErrRefused) || problem.Field != "image" || problem.Remedy == "") {
			t.Errorf("a volume at %s: %v", place, err)
		}
	}
}

// Nothing of an image's environment reaches the runtime of the helper, and all of it the commands. C055
func TestImageEnvironment(t *testing.T) {
	spec := sandbox.Spec{Workspace: t.TempDir(), Config: sandbox.DefaultConfig()}
	p := planFor(t, spec)
	p.image.Env = []string{"GOGC=1", "GOMEMLIMIT=1", "PATH=/x", "HOME=/y", "A=b=c\nd", "junk", "=x"}
	env := p.env()
	if env["GOGC"] != "1" || env["PATH"] != "/x" || env["A"] != "b=c\nd" || env["HOME"] == "/y" {
		t.Errorf("commands get %q", env)
	}
	if _, ok := env[""]; ok || env["junk"] != "" {
		t.Errorf("commands get %q", env)
	}
	own := strings.Join(p.spec.Env, " ")
	for _, name := range []string{"GODEBUG=", "GOGC=", "GOMAXPROCS=", "GOMEMLIMIT=", "GOTRACEBACK="} {
		if !strings.Contains(own, name) {
			t.Errorf("the helper gets the image's %s", name)
		}
	}
}
