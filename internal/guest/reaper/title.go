//go:build linux

package reaper

import (
	"os"
	"strings"
	"unsafe"
)

// A reaper shows in its arguments which command it serves: marker and session tag.
// A later helper finds it by them, and so what it holds, when its own helper is
// gone. The marker is no secret; nothing else of the command is shown.

// blankMarker is shown by a reaper that serves no command, or one without a marker.
const blankMarker = "--------------------------------"

// titleArgs are the arguments of a new reaper after its role.
func titleArgs(tag string) []string { return []string{blankMarker, tag} }

// titleMarker is where the marker stands in a program's arguments.
const titleMarker = 2

// showMarker shows a marker in the arguments of this process, which the kernel takes
// from the memory it put them into, as Go does. It is the only place that changes a
// string; nobody else uses that one.
func showMarker(marker string) {
	if len(os.Args) <= titleMarker || len(os.Args[titleMarker]) != len(blankMarker) {
		return
	}
	if len(marker) != len(blankMarker) {
		marker = blankMarker
	}
	shown := os.Args[titleMarker]
	copy(unsafe.Slice(unsafe.StringData(shown), len(shown)), strings.Clone(marker))
}
