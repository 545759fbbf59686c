//go:build berth_embed

package helperbin

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// TestRelease proves, in a release build, that every promised helper is embedded, that the
// recorded sums are the true ones, and that each is a program for its target.
func TestRelease(t *testing.T) {
	t.Setenv(EnvPath, "")
	for _, goarch := range []string{"amd64", "arm64"} {
		t.Run(goarch, func(t *testing.T) {
			content, err := fs.ReadFile(embedded(), "berth-guest-linux-"+goarch)
			if err != nil {
				t.Fatal(err)
			}
			h, err := For("linux", goarch, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := h.SHA256()
			if err != nil || recorded != sumOf(content) {
				t.Errorf("recorded sum %s, %v; want %s", recorded, err, sumOf(content))
			}
			if got, err := fileSum(h.Path); err != nil || got != recorded {
				t.Errorf("sum of the placed file %s, %v; want %s", got, err, recorded)
			}
		})
	}
}
