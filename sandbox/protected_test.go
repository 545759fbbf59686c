package sandbox

import (
	"errors"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// respell writes an absolute path of testHost in another way that leads to the same place.
func respell(t *rapid.T, p string) string {
	for range rapid.IntRange(0, 4).Draw(t, "times") {
		switch rapid.IntRange(0, 5).Draw(t, "how") {
		case 0:
			p = strings.Replace(p, "/", "//", rapid.IntRange(1, 3).Draw(t, "n"))
		case 1:
			p = strings.Replace(p, "/", "/./", 1)
		case 2:
			p = "/usr/.." + p
		case 3:
			p = "/home/ann/tools/up/.." + p // up leads to /home
		case 4:
			if rest, ok := strings.CutPrefix(p, "/home/ann"); ok {
				p = "/h/ann" + rest
			}
		case 5:
			if rest, ok := strings.CutPrefix(p, "/run"); ok {
				p = "/var/run" + rest
			}
		}
	}
	return p
}

// C017: no spelling of a protected path is accepted.
func TestNoSpellingPasses(t *testing.T) {
	protected := []string{
		"/", "/etc", "/etc/hostname", "/proc", "/proc/1", "/sys", "/dev/sda", "/boot", "/root", "/root/x", "/run", "/run/docker.sock",
		"/run/podman", "/run/other", "/run/user/1000", "/var/lib/docker", "/home", "/home/ann", "/home/ann/.ssh", "/home/ann/.ssh/id", "/home/ann/.docker",
		"/home/ann/.config", "/home/ann/.config/gcloud", "/home/ann/state", "/home/ann/state/berth/x",
	}
	rapid.Check(t, func(t *rapid.T) {
		source := respell(t, rapid.SampledFrom(protected).Draw(t, "path"))
		spec := goodSpec()
		spec.Config.Binds = []Bind{{Source: source, Target: "/data", ReadOnly: rapid.Bool().Draw(t, "ro")}}
		if _, err := Validate(spec, annFacts()); !errors.Is(err, ErrRefused) {
			t.Fatalf("bind of %q: %v", source, err)
		}
		spec = goodSpec()
		spec.Workspace = source
		if _, err := Validate(spec, annFacts()); !errors.Is(err, ErrRefused) {
			t.Fatalf("workspace %q: %v", source, err)
		}
	})
}

// Whatever is accepted leads to a place that is nobody's secret: looked at by another rule
// than the one that is tested.
func TestAcceptedSourcesAreHarmless(t *testing.T) {
	host := testHost()
	harmless := []string{"/usr", "/opt", "/tmp", "/x", "/home/ann/work", "/home/ann/data", "/home/ann/tools", "/home/ann/.config/other", "/home/bob", "/var/cache", "/h"}
	elements := []string{"home", "ann", "bob", "work", "data", "tools", "up", "keys", "dock", "away", "loop", "..", ".", "", "etc", "run", "var", "usr", "share", "h", "x", ".ssh", ".config", "other", "docker.sock", "proc", "1"}
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		source := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(elements), 0, 6).Draw(t, "elements"), "/")
		spec := goodSpec()
		spec.Config.Binds = []Bind{{Source: source, Target: "/data"}}
		if _, err := Validate(spec, annFacts()); err != nil {
			return
		}
		accepted++
		real, err := host.eval(source)
		if err != nil {
			t.Fatalf("%q was accepted and does not exist: %v", source, err)
		}
		for _, dir := range harmless {
			if real == dir || strings.HasPrefix(real, dir+"/") {
				return
			}
		}
		t.Fatalf("%q was accepted and is %q", source, real)
	})
	if accepted == 0 {
		t.Log("nothing was accepted in this run")
	}
}

// Targets inside are judged by where they are, not by how they are written.
func TestTargets(t *testing.T) {
	for target, free := range map[string]bool{
		"/": false, "/proc": false, "/proc/self": false, "/sys": false, "/dev/null": false, "/usr": false, "/usr/bin": false, "/bin": false, "/lib64": false,
		"/etc": false, "/etc/passwd": false, "/a/../etc": false, "//usr//": false, "/run/berth": false, "/run/berth/x": false,
		"/data": true, "/usr/local": true, "/usr/local/bin/tool": true, "/usr/share/x": true, "/etc/ssl/certs": true, "/opt": true, "/home/x": true, "/run": true, "/run/bertha": true,
		"/processes": true, "/device": true, "/etcetera": true, "/var/tmp": true,
	} {
		if why := coveredBy(target); (why == "") != free {
			t.Errorf("target %q (%q): %q, want free %t", target, path.Clean(target), why, free)
		}
	}
}
