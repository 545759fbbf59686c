package fsbridge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// Options and conditions that contradict themselves are refused, the others taken.
func TestCheck(t *testing.T) {
	t.Parallel()
	hash := fsbridge.DigestOf(make([]byte, 32))
	for name, tc := range map[string]struct {
		opts fsbridge.WriteOptions
		bad  bool
	}{
		"nothing":              {fsbridge.WriteOptions{}, false},
		"a mode":               {fsbridge.WriteOptions{Mode: 0o750}, false},
		"thirteen bits":        {fsbridge.WriteOptions{Mode: 0o10000, AllowSetID: true}, true},
		"set-id":               {fsbridge.WriteOptions{Mode: 0o4755}, true},
		"set-id, allowed":      {fsbridge.WriteOptions{Mode: 0o4755, AllowSetID: true}, false},
		"a negative size":      {fsbridge.WriteOptions{Size: -1}, true},
		"absent":               {fsbridge.WriteOptions{If: fsbridge.Precondition{Absent: true}}, false},
		"a hash":               {fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: hash}}, false},
		"a hash and absent":    {fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: hash, Absent: true}}, true},
		"a short hash":         {fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: hash[2:]}}, true},
		"a hash in capitals":   {fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: fsbridge.Digest(strings.Repeat("A", 64))}}, true},
		"a hash of other text": {fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: fsbridge.Digest(strings.Repeat("g", 64))}}, true},
	} {
		if err := tc.opts.Check(); (err != nil) != tc.bad || err != nil && !errors.Is(err, fsbridge.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mount table is completed into a copy, or refused.
func TestMountTableComplete(t *testing.T) {
	t.Parallel()
	given := fsbridge.MountTable{{Path: "/w", Kind: fsbridge.MountWorkspace}, {Path: "/", Kind: fsbridge.MountSystem}}
	got, err := given.Complete()
	want := fsbridge.MountTable{given[0], {Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true}}
	if err != nil || !slices.Equal(got, want) || given[1].ReadOnly {
		t.Errorf("%v, %v; given %v", got, err, given)
	}
	for _, bad := range []fsbridge.MountTable{{{Path: "w"}}, {{Path: ""}}, {{Path: "/w/"}}, {{Path: "/a/../w"}}, {{Path: "/w"}, {Path: "/w"}}} {
		if _, err := bad.Complete(); !errors.Is(err, fsbridge.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for p, holds := range map[string]bool{"/": true, "/w": true, "/w/a": false, "/v": false, "/ww": false} {
		if fsbridge.MountTable(want[:1]).Holds(p) != holds {
			t.Errorf("holds %s: %v", p, !holds)
		}
	}
}
