package bubblewrap

import (
	"github.com/workberth/workberth/fsbridge"
)

// helperArgs tells the helper its role.
func helperArgs(tag string, mounts fsbridge.MountTable) []string {
	args := []string{"serve", tagArg(tag)}
	for _, m := range mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		args = append(args, "--mount="+string(m.Kind)+":"+mode+":"+m.Path)
	}
	return args
}

// helperVersionArgs make the helper tell its version and end.
func helperVersionArgs() []string { return []string{"version"} }

// tagArg carries the tag of a generation.
func tagArg(tag string) string { return "--tag=" + tag }
