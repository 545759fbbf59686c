package version

import (
	"runtime/debug"
	"strings"
)

// unknown is the answer of a build that carries neither a stamp nor version-control facts,
// for example one made by `go test` or with -buildvcs=false.
const unknown = "devel"

// revisionLen is how much of a commit id is shown: enough to be unambiguous in any repository.
const revisionLen = 12

// stamped is the version given by the build:
//
//	go build -ldflags "-X github.com/workberth/workberth/internal/version.stamped=v1.2.3"
//
// The linker needs a variable; nothing assigns to it at run time.
var stamped string

// Version returns the version of the running program, never empty and without white space.
// The first of these that is known is taken:
//
//   - the version stamped by the build, which `make build` and `make release` always do;
//   - the module version, for a program installed with `go install ...@v1.2.3`;
//   - "devel+<revision>", with ".dirty" appended for a modified tree, for a plain `go build`
//     in a checkout;
//   - "devel".
//
// It is safe for concurrent use and always returns the same value in one process.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return describe(stamped, info)
}

// describe chooses the version from the stamp and the build facts, which may be nil.
func describe(stamp string, info *debug.BuildInfo) string {
	if v := strings.Join(strings.Fields(stamp), "-"); v != "" {
		return v
	}
	if info == nil {
		return unknown
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return unknown
	}
	if len(revision) > revisionLen {
		revision = revision[:revisionLen]
	}
	v := unknown + "+" + revision
	if settings["vcs.modified"] == "true" {
		v += ".dirty"
	}
	return v
}
