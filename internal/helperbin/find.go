package helperbin

import (
	"log/slog"
	"os"
	"runtime"
)

// EnvPath is the environment variable that names the helper program explicitly.
const EnvPath = "BERTH_GUEST"

// Name is the file name of the helper program.
const Name = "berth-guest"

// Source says where a helper was found.
type Source string

// The places a helper can come from.
const (
	// SourceEnv is the path in the environment variable [EnvPath].
	SourceEnv Source = "environment"
	// SourceEmbedded is the running program itself, by way of the cache directory.
	SourceEmbedded Source = "embedded"
	// SourceBeside is the directory of the running program.
	SourceBeside Source = "beside"
)

// Options tells where to look. The zero value is what a command-line program wants.
type Options struct {
	// Env looks up an environment variable; nil means [os.Getenv].
	// Read are EnvPath and, for the cache directory, XDG_CACHE_HOME and HOME.
	Env func(string) string
	// Executable is the path of the running program; empty means [os.Executable].
	Executable string
	// CacheDir is the directory an embedded helper is written below. It is created with mode
	// 0700. Empty means $XDG_CACHE_HOME/workberth, else $HOME/.cache/workberth, else
	// workberth-<uid> in the directory for temporary files.
	CacheDir string
	// Logger receives a warning when a cached helper had to be replaced; nil discards it.
	Logger *slog.Logger
}

// Helper is a program file that has been checked. It is an immutable value.
type Helper struct {
	// Path is the absolute path of the file.
	Path string
	// Source says where it was found.
	Source Source
	// GOOS and GOARCH are what it was built for, in Go's spelling.
	GOOS, GOARCH string

	sum func() (string, error)
}

// SHA256 returns the lower-case hexadecimal SHA-256 of the program. It is computed from the file
// on the first call, known beforehand for an embedded helper, and remembered by every copy of
// the Helper. It is safe for concurrent use.
func (h Helper) SHA256() (string, error) {
	if h.sum == nil {
		return fileSum(h.Path)
	}
	return h.sum()
}

// Find returns the helper for sandboxes on this machine: Linux, with the architecture of the
// running program.
//
// Errors: [*NotFoundError] when no place has one, [*UnusableError] when the first place that has
// one holds something that cannot be used, and the error of the file system when the cache
// directory cannot be written.
func Find(o Options) (Helper, error) {
	return For("linux", runtime.GOARCH, o)
}

// For returns the helper for the operating system and architecture named in Go's spelling, to be
// started there and not necessarily here. Places and errors are those of [Find], with one
// difference: a program named by [EnvPath] that is built for another target is passed over,
// unless the target is this machine's own, because the variable can name only one file.
func For(goos, goarch string, o Options) (Helper, error) {
	s := search{
		target:   target{goos, goarch},
		own:      target{"linux", runtime.GOARCH},
		env:      o.Env,
		exe:      o.Executable,
		cacheDir: o.CacheDir,
		log:      o.Logger,
		embedded: embedded(),
	}
	if s.env == nil {
		s.env = os.Getenv
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s.run()
}

// target is an operating system and architecture in Go's spelling.
type target struct{ goos, goarch string }

// String returns the target as "linux/amd64".
func (t target) String() string { return t.goos + "/" + t.goarch }

// suffixed returns the file name of the helper for t: "berth-guest-linux-amd64".
func (t target) suffixed() string { return Name + "-" + t.goos + "-" + t.goarch }
