package bridgetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
)

// preconditionChecks prove that a lost update is a conflict. C039
func preconditionChecks() []check {
	need := caps(fsbridge.CapWriteStream)
	return []check{
		{name: "hash", rows: []string{"C039"}, needs: need, run: ifHash},
		{name: "absent", rows: []string{"C039"}, needs: need, run: ifAbsent},
		{name: "absent-appears", rows: []string{"FSB-08", "C039"}, needs: caps(fsbridge.CapWriteStream, fsbridge.CapCreateFileExclusive), run: ifAbsentAppears},
		{name: "malformed", needs: need, run: ifMalformed},
		{name: "through-link", rows: []string{"C039"}, needs: need, run: ifThroughLink},
		{name: "remove", rows: []string{"C039"}, needs: caps(fsbridge.CapRemove), run: ifRemove},
		{name: "counter", rows: []string{"C039"}, needs: need, run: ifCounter},
		{name: "two-creators", rows: []string{"C039"}, needs: need, run: ifTwoCreators},
	}
}

// conflict demands a *ConflictError with these digests.
func (k *kit) conflict(what string, err error, current, expected fsbridge.Digest) {
	k.Helper()
	k.refused(what, err, fsbridge.ErrConflict)
	var ce *fsbridge.ConflictError
	if !errors.As(err, &ce) {
		k.Errorf("%s: error %v is no *fsbridge.ConflictError", what, err)
		return
	}
	if ce.Current != current || ce.Expected != expected {
		k.Errorf("%s: conflict tells current %q, expected %q; want %q and %q", what, ce.Current, ce.Expected, current, expected)
	}
}

func (k *kit) writeIf(p, content string, cond fsbridge.Precondition) (fsbridge.WriteResult, error) {
	return fsbridge.WriteStream(k.ctx, k.b, p, stringReader(content), fsbridge.WriteOptions{If: cond})
}

func ifHash(k *kit) {
	k.file("f", "base")
	base := digest([]byte("base"))
	_, err := k.writeIf("f", "base+A", fsbridge.Precondition{Hash: base})
	k.ok("A writes", err)
	_, err = k.writeIf("f", "base+B", fsbridge.Precondition{Hash: base})
	k.conflict("B writes", err, digest([]byte("base+A")), base)
	k.wantContent("f", "base+A")
	_, err = k.writeIf("f", "base+A+B", fsbridge.Precondition{Hash: digest([]byte("base+A"))})
	k.ok("B writes again", err)
	k.wantContent("f", "base+A+B")
	_, err = k.writeIf("new/f", "x", fsbridge.Precondition{Hash: base})
	k.conflict("hash of a missing file", err, "", base)
	k.wantNames(".", "f") // no parent directory either
	k.file("empty", "")
	_, err = k.writeIf("empty", "x", fsbridge.Precondition{Hash: digest(nil)})
	k.ok("hash of an empty file", err)
	k.wantContent("empty", "x")
	k.dir("d")
	_, err = k.writeIf("d", "x", fsbridge.Precondition{Hash: base})
	k.refused("hash of a directory", err)
	k.wantNames(".", "d", "empty", "f")
}

func ifAbsent(k *kit) {
	res, err := k.writeIf("d/f", "first", fsbridge.Precondition{Absent: true})
	k.ok("create", err)
	if !res.Created {
		k.Error("create: says it replaced a file")
	}
	_, err = k.writeIf("d/f", "second", fsbridge.Precondition{Absent: true})
	k.conflict("create again", err, digest([]byte("first")), "")
	k.wantContent("d/f", "first")
	_, err = k.writeIf("d", "x", fsbridge.Precondition{Absent: true})
	k.refused("create over a directory", err)
	k.wantNames("d", "f")
}

// ifAbsentAppears lets somebody else make the file while the content is on its way: it stays.
func ifAbsentAppears(k *kit) {
	for i, size := range []int{0, 10, 300_000} {
		p := numbered("d/f", i)
		src := &finishing{r: bytes.NewReader(pattern(size, 3)), end: func() { k.file(p, "theirs") }}
		_, err := fsbridge.WriteStream(k.ctx, k.b, p, src, fsbridge.WriteOptions{If: fsbridge.Precondition{Absent: true}})
		k.refused("write", err, fsbridge.ErrConflict, fs.ErrExist)
		k.wantContent(p, "theirs")
	}
	k.wantNames("d", "f00000", "f00001", "f00002")
}

// finishing calls end before it reports the end.
type finishing struct {
	r   io.Reader
	end func()
}

// Read implements io.Reader.
func (f *finishing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF && f.end != nil { // bytes.Reader gives io.EOF itself
		f.end()
		f.end = nil
	}
	return n, err
}

// ifMalformed gives conditions that can never hold or contradict themselves: nothing is written.
func ifMalformed(k *kit) {
	k.file("f", "base")
	base := digest([]byte("base"))
	for _, c := range []fsbridge.Precondition{
		{Hash: base, Absent: true}, {Hash: "x"}, {Hash: base[:10]}, {Hash: base + "0"}, {Hash: "sha256:" + base},
		{Hash: fsbridge.Digest(strings.ToUpper(string(base)))}, {Hash: fsbridge.Digest(strings.Repeat("z", 64))},
	} {
		for _, p := range []string{"f", "new"} {
			_, err := k.writeIf(p, "x", c)
			k.refused(fmt.Sprintf("%+v", c), err, fsbridge.ErrInvalid, fsbridge.ErrConflict)
		}
	}
	k.wantContent("f", "base")
	k.wantNames(".", "f")
}

func ifThroughLink(k *kit) {
	k.file("real/f", "base")
	k.link("l", "real/f")
	_, err := k.writeIf("l", "wrong", fsbridge.Precondition{Hash: digest([]byte("other"))})
	k.conflict("wrong hash", err, digest([]byte("base")), digest([]byte("other")))
	_, err = k.writeIf("l", "wrong", fsbridge.Precondition{Absent: true})
	k.refused("absent", err, fsbridge.ErrConflict, fs.ErrExist)
	_, err = k.writeIf("l", "new", fsbridge.Precondition{Hash: digest([]byte("base"))})
	k.ok("right hash", err)
	k.wantContent("real/f", "new")
	if k.look("l").Type != fsbridge.TypeSymlink {
		k.Error("the link was replaced")
	}
}

func ifRemove(k *kit) {
	k.file("f", "base")
	k.dir("d")
	base, other := digest([]byte("base")), digest([]byte("other"))
	rm := func(p string, c fsbridge.Precondition, ignore bool) error {
		return fsbridge.Remove(k.ctx, k.b, p, fsbridge.RemoveOptions{If: c, IgnoreMissing: ignore})
	}
	k.conflict("wrong hash", rm("f", fsbridge.Precondition{Hash: other}, false), base, other)
	k.wantContent("f", "base")
	k.refused("of a directory", rm("d", fsbridge.Precondition{Hash: other}, false))
	k.wantNames(".", "d", "f")
	k.ok("right hash", rm("f", fsbridge.Precondition{Hash: base}, false))
	k.wantMissing("f")
	k.refused("missing", rm("f", fsbridge.Precondition{Hash: base}, false), fs.ErrNotExist, fsbridge.ErrConflict)
}

// ifCounter lets two writers increment one counter: no increment is lost. C039
func ifCounter(k *kit) {
	const rounds = 200
	k.file("n", "0")
	var wins, conflicts atomic.Int64
	k.together(2, func(int) {
		for range rounds {
			data, err := k.b.ReadFile(k.ctx, "n")
			if err != nil {
				k.Errorf("read: %v", err)
				return
			}
			n, err := strconv.Atoi(string(data))
			if err != nil {
				k.Errorf("the counter holds %q", data)
				return
			}
			_, err = k.writeIf("n", strconv.Itoa(n+1), fsbridge.Precondition{Hash: digest(data)})
			switch {
			case err == nil:
				wins.Add(1)
			case errors.Is(err, fsbridge.ErrConflict):
				conflicts.Add(1)
			default:
				k.Errorf("write: %v", err)
				return
			}
		}
	})
	k.wantContent("n", strconv.FormatInt(wins.Load(), 10))
	k.Logf("%d successes, %d conflicts", wins.Load(), conflicts.Load())
	if wins.Load()+conflicts.Load() != 2*rounds || wins.Load() == 0 {
		k.Errorf("%d successes and %d conflicts in %d rounds", wins.Load(), conflicts.Load(), 2*rounds)
	}
	k.wantNames(".", "n")
}

// ifTwoCreators lets two writers create the same files: exactly one succeeds each time.
func ifTwoCreators(k *kit) {
	for i := range 100 {
		p := numbered("f", i)
		var wins atomic.Int64
		k.together(2, func(w int) {
			_, err := k.writeIf(p, strconv.Itoa(w), fsbridge.Precondition{Absent: true})
			switch {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, fsbridge.ErrConflict) && !errors.Is(err, fs.ErrExist):
				k.Errorf("write: %v", err)
			}
		})
		if wins.Load() != 1 {
			k.Fatalf("%q was created %d times", p, wins.Load())
		}
	}
}
