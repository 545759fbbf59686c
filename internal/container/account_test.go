package container

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// Who runs inside is who the workspace belongs to, under the number that the engine gives that user:
// its own where numbers are the same or can be kept, 0 where the engine calls its own user that. C043 C047
func TestAccount(t *testing.T) {
	self := strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid())
	rootful, keeping, shifting := Description{}, Description{Rootless: true, KeepsID: true}, Description{Rootless: true}
	for name, tc := range map[string]struct {
		about Description
		user  string
		want  string
		keep  bool
	}{
		"rootful": {rootful, "", self, false}, "rootful, as asked": {rootful, "77:78", "77:78", false},
		"rootless": {keeping, "", self, true}, "rootless, as asked": {keeping, "77:78", "77:78", true},
		"rootless without": {shifting, "", "0:0", false}, "rootless without, as asked": {shifting, "77:78", "77:78", false},
	} {
		spec := sandbox.Spec{Workspace: t.TempDir(), Config: sandbox.DefaultConfig()}
		spec.Config.User = tc.user
		a, err := accountFor(spec, tc.about)
		if err != nil {
			t.Fatal(err)
		}
		b := &Backend{opts: Options{Name: "docker"}, state: "0123456789abcdef"}
		p, err := b.newPlan(sandbox.Resolved{Spec: spec, ID: "docker-0123456789abcdef"}, tc.about, a, nil, Image{}, place{own: "/own"})
		if err != nil {
			t.Fatal(err)
		}
		if p.spec.User != tc.want || p.spec.KeepID != tc.keep {
			t.Errorf("%s: user %s, keep %t; want %s, %t", name, p.spec.User, p.spec.KeepID, tc.want, tc.keep)
		}
		if tc.user == "" && (a.UID != os.Geteuid() || a.Other) {
			t.Errorf("%s: outside it is user %d (other %t)", name, a.UID, a.Other)
		}
	}
}

// An engine whose containers would write as somebody else is refused, with what to do. C043
func TestForeignUsers(t *testing.T) {
	for name, tc := range map[string]struct {
		about   Description
		refused bool
	}{
		"plain": {Description{Security: []string{"seccomp"}}, false}, "userns-remap": {Description{Security: []string{"seccomp", "userns"}}, true},
		"rootless": {Description{Rootless: true, KeepsID: true, Security: []string{"userns"}}, os.Geteuid() == 0},
	} {
		err := checkUser(tc.about)
		var p *sandbox.Problem
		if tc.refused != (err != nil) || tc.refused && (!errors.As(err, &p) || !errors.Is(err, sandbox.ErrUnavailable) || p.Remedy == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
