//go:build !berth_embed

package helperbin

import "io/fs"

// embedded returns nil: this program carries no helpers.
func embedded() fs.FS { return nil }
