package bridgetest

import (
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
)

// hashChecks prove digests.
func hashChecks() []check {
	need := caps(fsbridge.CapHashFile)
	return []check{
		{name: "digest", needs: need, run: hashDigest},
		{name: "errors", needs: need, run: hashErrors},
	}
}

// hashDigest hashes files of many sizes, directly and through a link.
func hashDigest(k *kit) {
	for _, n := range []int{0, 1, 55, 56, 63, 64, 65, 4096, 65537, 3<<20 + 1} {
		data := pattern(n, byte(n))
		k.file("f", string(data))
		for _, p := range []string{"f", k.abs("f")} {
			h, err := fsbridge.HashFile(k.ctx, k.b, p)
			k.ok("hash", err)
			if h.Digest != digest(data) || h.Size != int64(n) {
				k.Errorf("hash of %d bytes: %+v, want %s", n, h, digest(data))
			}
		}
	}
	if k.try("l", Node{Type: fsbridge.TypeSymlink, Target: "f"}) {
		h, err := fsbridge.HashFile(k.ctx, k.b, "l")
		k.ok("hash", err)
		if h.Size != 3<<20+1 {
			k.Errorf("hash through a link: %+v", h)
		}
	}
}

func hashErrors(k *kit) {
	k.dir("d")
	for p, want := range map[string]error{"absent": fs.ErrNotExist, "d": fsbridge.ErrNotRegular} {
		h, err := fsbridge.HashFile(k.ctx, k.b, p)
		k.refused("hash "+p, err, want)
		if h != (fsbridge.FileHash{}) {
			k.Errorf("hash %q: an error and %+v", p, h)
		}
	}
}
