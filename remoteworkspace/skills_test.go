package remoteworkspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/skills"
)

// skillHost is a host with one workspace directory and a local discovery that says so.
type skillHost struct {
	dir      string
	registry *remoteworkspace.Registry
	all      *remoteworkspace.Workspaces
	asked    int // how often local discovery ran
}

func newSkillHost(t *testing.T, authorize remoteworkspace.AuthorizeFunc) *skillHost {
	t.Helper()
	h := &skillHost{dir: t.TempDir(), registry: remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})}
	addSkill(t, h.dir, "stale")
	all, err := remoteworkspace.New(remoteworkspace.Options{Registry: h.registry, Local: openLocal, Authorize: authorize})
	if err != nil {
		t.Fatal(err)
	}
	h.all = all
	return h
}

func addSkill(t *testing.T, dir, name string) {
	t.Helper()
	d := filepath.Join(dir, "skills", name)
	if err := os.MkdirAll(d, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: " + name + "\ndescription: d\nmetadata: {berth: {requires: {bins: [far-tool]}}}\n---\n"
	if err := os.WriteFile(filepath.Join(d, "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// facts is a prober of a machine that has far-tool, or not.
type facts bool

func (f facts) Probe(_ context.Context, ask skills.Request) (skills.Facts, error) {
	out := skills.Facts{Platform: "linux", Binaries: map[string]bool{}}
	for _, b := range ask.Binaries {
		out.Binaries[b] = bool(f)
	}
	return out, nil
}

// discover is a LoadSkills over a bridge.
func discover(open fsbridge.Factory, p skills.Prober) func(context.Context) (skills.Discovery, error) {
	return func(ctx context.Context) (skills.Discovery, error) {
		b, err := open(ctx, nil)
		if err != nil {
			return skills.Discovery{}, err
		}
		if c, ok := b.(interface{ Close() error }); ok {
			defer c.Close()
		}
		return skills.Discover(ctx, b, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, p, skills.Options{})
	}
}

// load gives the names that are found, with their states.
func (h *skillHost) load(ctx context.Context, policy skills.Policy) (string, error) {
	d, err := h.all.LoadSkills(ctx, h.dir, func(ctx context.Context, dir string) (skills.Discovery, error) {
		h.asked++
		return discover(localFactory(dir), facts(false))(ctx)
	})
	if err != nil {
		return "", err
	}
	l, err := skills.Select(policy, d)
	var out []string
	for _, v := range l.Verdicts {
		out = append(out, v.Name+" "+string(v.State))
	}
	return fmt.Sprint(out), err
}

func (h *skillHost) want(t *testing.T, what, want string, policy skills.Policy) {
	t.Helper()
	if got, err := h.load(t.Context(), policy); err != nil || got != want {
		t.Errorf("%s: %s, %v; want %s", what, got, err, want)
	}
}

func (h *skillHost) refused(t *testing.T, what string, also ...error) {
	t.Helper()
	before := h.asked
	got, err := h.load(t.Context(), skills.Policy{})
	for _, e := range append(also, remoteworkspace.ErrUnavailable) {
		if !errors.Is(err, e) {
			t.Errorf("%s: %s, %v; want %v", what, got, err, e)
		}
	}
	var doc *remoteworkspace.DocumentError
	if !errors.As(err, &doc) || doc.Hint == "" || doc.Method != remoteworkspace.MethodSkills {
		t.Errorf("%s: no hint: %v", what, err)
	}
	if h.asked != before {
		t.Errorf("%s: local discovery was used instead", what)
	}
}

func (h *skillHost) register(t *testing.T, a remoteworkspace.Access) (release func()) {
	t.Helper()
	release, err := h.registry.Register(h.dir, a)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// SKL-01 SKL-02 SKL-04 SKL-05 SKL-08: the skills of a bound workspace are those on its machine,
// judged by what that machine has and by the configuration here, and never those of this disk.
func TestSkillsOfBoundWorkspace(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		h := newSkillHost(t, nil)
		addSkill(t, p.root, "fresh")
		addSkill(t, p.root, "unwanted")
		if err := h.registry.Declare(h.dir); err != nil {
			t.Fatal(err)
		}
		h.refused(t, "declared only")
		release := h.register(t, remoteworkspace.Access{Bridge: p.open, LoadSkills: discover(p.open, facts(true))})
		h.want(t, "bound", "[fresh loaded unwanted disabled]", skills.Policy{Deny: []string{"unwanted"}})
		release()
		h.refused(t, "stopped")
		down := errors.New("no route")
		release = h.register(t, remoteworkspace.Access{Bridge: p.open, LoadSkills: func(context.Context) (skills.Discovery, error) { return skills.Discovery{}, down }})
		h.refused(t, "unreachable", down)
		release()
		release = h.register(t, remoteworkspace.Access{Bridge: p.open, LoadSkills: discover(p.open, facts(false))})
		h.want(t, "registered again", "[fresh missing unwanted missing]", skills.Policy{})
		release()
		if h.asked != 0 {
			t.Errorf("local discovery ran %d times", h.asked)
		}
	})
}

// SKL-08: an answer that comes when the registration is over is refused.
func TestSkillsReleasedMeanwhile(t *testing.T) {
	h := newSkillHost(t, nil)
	if err := h.registry.Declare(h.dir); err != nil {
		t.Fatal(err)
	}
	var release func()
	release = h.register(t, remoteworkspace.Access{Bridge: localFactory(h.dir), LoadSkills: func(context.Context) (skills.Discovery, error) {
		release()
		return skills.Discovery{Skills: []skills.Skill{{Name: "late"}}}, nil
	}})
	h.refused(t, "released meanwhile")
}

// SKL-06 SKL-07: without a binding, and with one for documents only, skills are found locally, also
// when that one has stopped.
func TestSkillsLocal(t *testing.T) {
	h := newSkillHost(t, nil)
	h.want(t, "unbound", "[stale missing]", skills.Policy{})
	if err := h.registry.Declare(h.dir); err != nil {
		t.Fatal(err)
	}
	release := h.register(t, remoteworkspace.Access{Bridge: localFactory(t.TempDir())})
	h.want(t, "documents only", "[stale missing]", skills.Policy{})
	release()
	h.want(t, "documents only, stopped", "[stale missing]", skills.Policy{})
	if h.asked != 3 {
		t.Errorf("local discovery ran %d times", h.asked)
	}
	if _, err := h.all.LoadSkills(t.Context(), t.TempDir(), nil); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("no local discovery: %v", err)
	}
}

// SKL-01: the authorisation of the host comes first, and counts when the answer is to be made.
func TestSkillsAuthorised(t *testing.T) {
	refuse := errors.New("not you")
	guarded := false
	h := newSkillHost(t, func(_ context.Context, op remoteworkspace.Operation) (fsbridge.AssertFunc, error) {
		if op.Method != remoteworkspace.MethodSkills {
			t.Errorf("asked about %s", op.Method)
		}
		if guarded {
			return func() error { return refuse }, nil
		}
		return nil, refuse
	})
	if _, err := h.load(t.Context(), skills.Policy{}); !errors.Is(err, remoteworkspace.ErrUnauthorized) || !errors.Is(err, refuse) {
		t.Error(err)
	}
	guarded = true
	if _, err := h.load(t.Context(), skills.Policy{}); !errors.Is(err, fsbridge.ErrNotCurrent) || h.asked != 0 {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	free := newSkillHost(t, nil)
	if err := free.registry.Declare(free.dir); err != nil {
		t.Fatal(err)
	}
	free.register(t, remoteworkspace.Access{Bridge: localFactory(free.dir), LoadSkills: discover(localFactory(free.dir), nil)})
	if _, err := free.load(ctx, skills.Policy{}); !errors.Is(err, context.Canceled) || errors.Is(err, remoteworkspace.ErrUnavailable) {
		t.Error(err)
	}
}
