package enginetest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// patience bounds every check, against hangs only.
const patience = 2 * time.Minute

// Option tells the suite what the interface of engines does not have.
type Option func(*suite)

// Pause freezes a container.
func Pause(f func(ctx context.Context, id string) error) Option {
	return func(s *suite) { s.pause = f }
}

// RemoveImage removes an image. Without it the images of the suite stay.
func RemoveImage(f func(ctx context.Context, id string) error) Option {
	return func(s *suite) { s.removeImage = f }
}

// Unreachable is a client of an address where nobody listens.
func Unreachable(engine container.Engine) Option {
	return func(s *suite) { s.unreachable = engine }
}

// KeepUser is the number of the ordinary user who runs the engine.
func KeepUser(uid int) Option {
	return func(s *suite) { s.keepUser = uid }
}

// ImageVolumes says why containers have the volumes that an image declares, although nobody asked
// for them.
func ImageVolumes(because string) Option {
	return func(s *suite) { s.volumesBecause = because }
}

// Shared is a directory that the engine and this process see at the same path; without it that is
// a temporary one.
func Shared(dir string) Option {
	return func(s *suite) { s.shared = dir }
}

// suite is one run.
type suite struct {
	engine      container.Engine
	about       container.Description
	unreachable container.Engine
	pause       func(ctx context.Context, id string) error
	removeImage func(ctx context.Context, id string) error
	shared      string
	keepUser    int
	// volumesBecause is empty where no volume is made.
	volumesBecause string

	// word is random, in all names and in the label.
	word string
	// plain was imported; rich was loaded and declares all that a container must not take over.
	plain, rich string
}

// label is on all containers of the suite, with the word as its value.
const label = "berth.enginetest"

// Run checks an engine.
func Run(t *testing.T, engine container.Engine, opts ...Option) {
	t.Helper()
	s := &suite{engine: engine, word: strings.ToLower(rand.Text()[:10])}
	for _, o := range opts {
		o(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if s.about, err = engine.Describe(ctx); err != nil {
		t.Fatalf("Describe: %v", err)
	}
	t.Logf("engine: %+v", s.about)
	if s.shared == "" {
		if s.shared, err = os.MkdirTemp("", "enginetest-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(s.shared) })
	}
	if err := os.Chmod(s.shared, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.clear(t) })
	s.makeImages(ctx, t)
	for _, check := range checks() {
		t.Run(check.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			check.run(&kit{T: t, suite: s, ctx: ctx})
		})
	}
}

// check is one of the suite's.
type check struct {
	name string
	run  func(k *kit)
}

// checks lists all.
func checks() []check {
	return []check{
		{"describe", describes}, {"images", images}, {"missing image", missingImage}, {"failed pull", failedPull},
		{"life", life}, {"wait", waits}, {"wait given up", waitGivenUp}, {"wait for a removed one", waitRemoved},
		{"logs", logs}, {"noise", noisy}, {"kill", kill}, {"kill a paused one", killPaused}, {"kill beside the machine's processes", killAmongOthers},
		{"remove", remove}, {"remove together", removeTogether}, {"failed start", failedStart}, {"missing network", missingNetwork}, {"name conflict", conflict}, {"not found", notFound}, {"labels", labels},
		{"many at a time", crowd}, {"given up before", cancelled}, {"unreachable", unreachable},
		{"read-only root", readOnlyRoot}, {"writable root", writableRoot}, {"tmpfs", tmpfs}, {"binds", binds}, {"mounts below a source", mountsBelow},
		{"missing bind source", missingSource}, {"capabilities", capabilities}, {"added capability", addedCapability},
		{"seccomp", seccomp}, {"no network", noNetwork}, {"user", user}, {"kept user", keepsID}, {"command and environment", replaces},
		{"image's wishes", wishes}, {"image's volumes", volumes}, {"names inside", namesInside}, {"init", initProcess}, {"standard input", input},
		{"carried volumes", carriedVolumes}, {"carried content", carriedContent}, {"carried stream", carriedStream},
		{"pids limit", pidsLimit}, {"memory limit", memoryLimit}, {"cpu limit", cpuLimit}, {"ulimits", ulimits},
	}
}

// clear removes what the suite has made.
func (s *suite) clear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	left, err := s.engine.List(ctx, map[string]string{label: s.word})
	if err != nil {
		t.Errorf("List: %v", err)
	}
	for _, c := range left {
		if err := s.engine.Remove(ctx, c.ID); err != nil {
			t.Errorf("Remove(%s): %v", c.Name, err)
		}
	}
	if s.removeImage == nil {
		return
	}
	for _, image := range []string{s.plain, s.rich} {
		if image == "" {
			continue
		}
		if err := s.removeImage(ctx, image); err != nil {
			t.Errorf("remove image %s: %v", image, err)
		}
	}
}

// missing skips for want of a means that every machine with engines has.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}
