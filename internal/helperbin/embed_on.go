//go:build berth_embed

package helperbin

import (
	"embed"
	"io/fs"
)

// files holds the helpers that `make release` built, and their sums.
//
//go:embed embedded/berth-guest-*
var files embed.FS

// embedded returns the helpers this program carries.
func embedded() fs.FS {
	sub, err := fs.Sub(files, "embedded")
	if err != nil {
		return nil // the name is valid, so this cannot happen
	}
	return sub
}
