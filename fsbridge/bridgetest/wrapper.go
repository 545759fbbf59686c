package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// WrapperOptions direct CheckWrapper.
type WrapperOptions struct {
	// Hides lists the capabilities that the wrapper leaves out on purpose, such as all changes
	// in a wrapper that makes a bridge read-only. They must then be missing always.
	Hides []fsbridge.Capability
	// HidesWrite says that WriteFile is refused as well.
	HidesWrite bool
}

// CheckWrapper proves that a wrapper forwards every capability of the bridge it wraps, and declares
// no other: by wrapping bridges with all capabilities, with none, with each one alone, and with all
// methods but one capability denied through [fsbridge.Declarer]. Every operation must reach the
// wrapped bridge with context, path and options unchanged, and its result and error must come back.
// Keeps FSB-09.
func CheckWrapper(t *testing.T, wrap func(fsbridge.Bridge) fsbridge.Bridge, o WrapperOptions) {
	t.Helper()
	visible := func(c fsbridge.Capability) bool { return !slices.Contains(o.Hides, c) }
	t.Run("all", func(t *testing.T) {
		p := &probe{}
		w := wrap(p)
		wantDeclared(t, w, fsbridge.AllCapabilities(), visible)
		for _, c := range calls() {
			if visible(c.cap) && (c.name != "write" || !o.HidesWrite) {
				c.check(t, w, p)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		p := &probe{}
		w := wrap(coreOf(p))
		wantDeclared(t, w, nil, visible)
		for _, c := range calls() {
			if c.cap != "" {
				c.checkMissing(t, w, p)
			}
		}
	})
	for _, c := range fsbridge.AllCapabilities() {
		t.Run("only-"+string(c), func(t *testing.T) {
			p := &probe{}
			w := wrap(onlyOf(p, c))
			wantDeclared(t, w, []fsbridge.Capability{c}, visible)
			for _, call := range calls() {
				if call.cap == c && visible(c) {
					call.check(t, w, p)
				}
			}
		})
		t.Run("denied-"+string(c), func(t *testing.T) {
			p := &probe{denied: c}
			w := wrap(p)
			rest := slices.DeleteFunc(fsbridge.AllCapabilities(), func(x fsbridge.Capability) bool { return x == c })
			wantDeclared(t, w, rest, visible)
			for _, call := range calls() {
				if call.cap == c {
					call.checkMissing(t, w, p)
				}
			}
		})
	}
}

// wantDeclared compares what w declares with what its inner bridge declares.
func wantDeclared(t *testing.T, w fsbridge.Bridge, inner []fsbridge.Capability, visible func(fsbridge.Capability) bool) {
	t.Helper()
	for _, c := range fsbridge.AllCapabilities() {
		want := slices.Contains(inner, c) && visible(c)
		switch has := fsbridge.Has(w, c); {
		case has && !want:
			t.Errorf("the wrapper declares %q, which the bridge it wraps does not", c)
		case !has && want:
			t.Errorf("the wrapper does not forward %q", c)
		}
	}
}

// contextKey marks the context of a call.
type contextKey struct{}

// errProbe is what a failing probe fails with.
var errProbe = errors.New("error of the wrapped bridge")

// check makes the call through w and looks at what p saw and what came back.
func (c call) check(t *testing.T, w fsbridge.Bridge, p *probe) {
	t.Helper()
	ctx := context.WithValue(t.Context(), contextKey{}, "marked")
	for _, fail := range []error{nil, errProbe} {
		if fail != nil && c.cap == fsbridge.CapMounts {
			continue // it cannot fail
		}
		p.seen, p.fail, p.context = nil, fail, true
		got, err := c.do(ctx, w)
		if !errors.Is(err, fail) || fail == nil && err != nil {
			t.Errorf("%s: error %v came back, want %v", c.name, err, fail)
		}
		if fail == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: result %+v came back, want %+v", c.name, got, c.want)
		}
		if len(p.seen) != 1 || p.seen[0] != c.seen {
			t.Errorf("%s: the wrapped bridge saw %q, want %q", c.name, p.seen, c.seen)
		}
		if !p.context {
			t.Errorf("%s: the context did not reach the wrapped bridge", c.name)
		}
	}
}

// checkMissing makes the call through w and demands the refusal of FSB-09.
func (c call) checkMissing(t *testing.T, w fsbridge.Bridge, p *probe) {
	t.Helper()
	p.seen, p.fail = nil, nil
	_, err := c.do(t.Context(), w)
	var ue *fsbridge.UnsupportedError
	if c.cap != fsbridge.CapMounts && (!errors.As(err, &ue) || ue.Capability != c.cap) {
		t.Errorf("%s: error %v, want one that names %q", c.name, err, c.cap)
	}
	if len(p.seen) != 0 {
		t.Errorf("%s: the wrapped bridge was asked for %q, which it does not declare", c.name, p.seen)
	}
}

// saw makes the text by which a call is recognised.
func saw(name string, args ...any) string { return fmt.Sprintf("%s %+v", name, args) }
