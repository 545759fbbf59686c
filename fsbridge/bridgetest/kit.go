package bridgetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// patience bounds every check, against hangs only.
const patience = 5 * time.Minute

// kit is what a check works with: one environment, and helpers that end the check when the
// environment itself does not do as asked.
type kit struct {
	*testing.T
	target *Target
	env    *Environment
	b      fsbridge.Bridge
	ctx    context.Context
	// secret is the content of OUT's files and part of its names; no operation may yield it.
	secret string
	sealed map[string]string
	count  *int
}

// newKit makes an environment.
func newKit(t *testing.T, target *Target, o Options) *kit {
	t.Helper()
	o.Umask = o.umask()
	env := target.New(t, o)
	if env == nil || env.Bridge == nil || env.Oracle == nil || env.Workspace == "" || env.Out == "" {
		t.Fatal("bridgetest: the environment lacks a bridge, an oracle, its workspace or OUT")
	}
	if o.Second && env.Second == "" || o.Bind && env.Bind == "" {
		t.Skip("this target cannot make an environment with a further mount")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	k := &kit{T: t, target: target, env: env, b: env.Bridge, ctx: ctx, secret: "secret" + rand.Text(), count: new(int)}
	return k
}

// need skips the check when the bridge does not declare c.
func (k *kit) need(c fsbridge.Capability) {
	k.Helper()
	if !fsbridge.Has(k.b, c) {
		k.Skipf("%s does not declare capability %q", k.target.Name, c)
	}
}

// has tells whether the bridge declares c.
func (k *kit) has(c fsbridge.Capability) bool { return fsbridge.Has(k.b, c) }

// abs gives the absolute path of p, which may be relative to the workspace.
func (k *kit) abs(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return strings.TrimSuffix(k.env.Workspace, "/") + "/" + p
}

// try makes a file and reports whether the oracle can.
func (k *kit) try(p string, n Node) bool {
	k.Helper()
	err := k.env.Oracle.Make(k.abs(p), n)
	if errors.Is(err, errors.ErrUnsupported) {
		k.Logf("left out: the oracle cannot make %q: %v", p, err)
		return false
	}
	if err != nil {
		k.Fatalf("oracle: make %q: %v", p, err)
	}
	return true
}

// make makes a file and skips the check when the oracle cannot.
func (k *kit) make(p string, n Node) {
	k.Helper()
	if !k.try(p, n) {
		k.Skipf("this environment's oracle cannot make a %s", n.kind())
	}
}

func (n Node) kind() string {
	if n.HardLink != "" {
		return "hard link"
	}
	return string(n.Type)
}

// file makes a regular file of mode 0644.
func (k *kit) file(p, content string) {
	k.Helper()
	k.make(p, Node{Type: fsbridge.TypeRegular, Data: []byte(content)})
}

// dir makes a directory.
func (k *kit) dir(p string) { k.Helper(); k.make(p, Node{Type: fsbridge.TypeDir}) }

// link makes a symbolic link at p.
func (k *kit) link(p, target string) {
	k.Helper()
	k.make(p, Node{Type: fsbridge.TypeSymlink, Target: target})
}

// look describes the file at p, which must exist.
func (k *kit) look(p string) Node {
	k.Helper()
	n, err := k.env.Oracle.Look(k.abs(p))
	if err != nil {
		k.Fatalf("oracle: look at %q: %v", p, err)
	}
	return n
}

// exists tells whether there is a file at p itself.
func (k *kit) exists(p string) bool {
	k.Helper()
	_, err := k.env.Oracle.Look(k.abs(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Fatalf("oracle: look at %q: %v", p, err)
	}
	return err == nil
}

// names lists the directory at p as a set.
func (k *kit) names(p string) map[string]bool {
	k.Helper()
	names, err := k.env.Oracle.Names(k.abs(p))
	if err != nil {
		k.Fatalf("oracle: list %q: %v", p, err)
	}
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}

// content reads the file at p.
func (k *kit) content(p string) []byte {
	k.Helper()
	r, err := k.env.Oracle.Open(k.abs(p))
	if err != nil {
		k.Fatalf("oracle: open %q: %v", p, err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		k.Fatalf("oracle: read %q: %v", p, err)
	}
	return data
}

// remove removes the file at p with the oracle.
func (k *kit) remove(p string) {
	k.Helper()
	if err := k.env.Oracle.Remove(k.abs(p)); err != nil {
		k.Fatalf("oracle: remove %q: %v", p, err)
	}
}

// wantContent demands that the file at p holds exactly want.
func (k *kit) wantContent(p, want string) {
	k.Helper()
	if got := k.content(p); string(got) != want {
		k.Errorf("%q holds %s, want %s", p, brief(got), brief([]byte(want)))
	}
}

// wantNames demands that the directory at p has exactly these entries.
func (k *kit) wantNames(p string, want ...string) {
	k.Helper()
	got := k.names(p)
	for _, w := range want {
		if !got[w] {
			k.Errorf("directory %q lacks %q", p, w)
		}
		delete(got, w)
	}
	for g := range got {
		k.Errorf("directory %q has an entry %q too many", p, g)
	}
}

// wantMissing demands that nothing exists at p.
func (k *kit) wantMissing(p string) {
	k.Helper()
	if k.exists(p) {
		k.Errorf("%q exists", p)
	}
}

// ok demands success.
func (k *kit) ok(what string, err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("%s: %v", what, err)
	}
}

// refused demands a *PathError that matches one of the sentinels; without any sentinel, any will
// do.
func (k *kit) refused(what string, err error, sentinels ...error) {
	k.Helper()
	if err == nil {
		k.Errorf("%s: succeeded, want an error%s", what, oneOf(sentinels))
		return
	}
	var pe *fsbridge.PathError
	if !errors.As(err, &pe) {
		k.Errorf("%s: error %q is no *fsbridge.PathError", what, err)
	} else if pe.Op == "" || pe.Err == nil {
		k.Errorf("%s: error %q does not tell operation and reason", what, err)
	}
	if strings.Contains(err.Error(), k.secret) {
		k.Errorf("%s: the error message tells the secret", what)
	}
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return
		}
	}
	if len(sentinels) > 0 {
		k.Errorf("%s: error %q matches not%s", what, err, oneOf(sentinels))
	}
}

func oneOf(errs []error) string {
	var b strings.Builder
	for i, e := range errs {
		if i > 0 {
			b.WriteString(" or")
		}
		fmt.Fprintf(&b, " %q", e)
	}
	return b.String()
}

// brief shows the beginning of data.
func brief(data []byte) string {
	if len(data) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", data[:60], len(data))
	}
	return fmt.Sprintf("%q", data)
}

// pattern gives n bytes that repeat nowhere soon and depend on seed.
func pattern(n int, seed byte) []byte {
	out := make([]byte, n)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range out {
		if i%8 == 0 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		out[i] = byte(x >> (8 * (i % 8)))
	}
	return out
}

// digest is the SHA-256 of data.
func digest(data []byte) fsbridge.Digest {
	sum := sha256.Sum256(data)
	return fsbridge.DigestOf(sum[:])
}

// leaks tells whether data shows the secret.
func (k *kit) leaks(data []byte) bool { return bytes.Contains(data, []byte(k.secret)) }

// base is the last element of the path of OUT.
func (k *kit) outBase() string { return path.Base(k.env.Out) }
