package helperbin

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// search is one search for one target, with every outside fact made explicit.
type search struct {
	target   target
	own      target // what this machine runs
	env      func(string) string
	exe      string
	cacheDir string
	log      *slog.Logger
	embedded fs.FS // nil when the program carries no helpers

	looked []Place
}

// run asks the places in order and returns the first answer, good or bad.
func (s *search) run() (Helper, error) {
	for _, place := range []func() (Helper, error){s.fromEnv, s.fromEmbedded, s.fromBeside} {
		h, err := place()
		if !errors.Is(err, errNext) {
			return h, err
		}
	}
	return Helper{}, &NotFoundError{GOOS: s.target.goos, GOARCH: s.target.goarch, Looked: s.looked}
}

// errNext is returned by a place that has nothing to offer.
var errNext = errors.New("nothing here")

// next records a place without an answer.
func (s *search) next(where, why string) (Helper, error) {
	s.looked = append(s.looked, Place{Where: where, Why: why})
	return Helper{}, errNext
}

// fromEnv takes the explicit path.
func (s *search) fromEnv() (Helper, error) {
	path := s.env(EnvPath)
	if path == "" {
		return s.next("the environment variable "+EnvPath, "not set")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Helper{}, fmt.Errorf("make %s=%q absolute: %w", EnvPath, path, err)
	}
	err = check(abs, s.target)
	var wrong *wrongTargetError
	if errors.As(err, &wrong) && s.target != s.own {
		return s.next(EnvPath+"="+abs, err.Error())
	}
	return s.checked(abs, SourceEnv, err)
}

// fromEmbedded takes the helper the program carries.
func (s *search) fromEmbedded() (Helper, error) {
	const where = "inside this program"
	if s.embedded == nil {
		return s.next(where, "it was built without embedded helpers")
	}
	content, sum, err := readEmbedded(s.embedded, s.target)
	if errors.Is(err, fs.ErrNotExist) {
		return s.next(where, "it carries none for "+s.target.String())
	}
	if err != nil {
		return Helper{}, err
	}
	dir := s.cacheDir
	if dir == "" {
		dir = defaultCacheDir(s.env)
	}
	path, err := cache{dir: dir, log: s.log}.place(content, sum)
	if err != nil {
		return Helper{}, err
	}
	h, err := s.checked(path, SourceEmbedded, check(path, s.target))
	h.sum = func() (string, error) { return sum, nil }
	return h, err
}

// fromBeside takes the file next to the running program.
func (s *search) fromBeside() (Helper, error) {
	exe := s.exe
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return s.next("beside this program", err.Error())
		}
	}
	// A link in a bin directory points to where the programs were installed together.
	if resolved, err := filepath.EvalSymlinks(exe); err == nil {
		exe = resolved
	}
	exe, err := filepath.Abs(exe)
	if err != nil {
		return Helper{}, fmt.Errorf("make the program's path %q absolute: %w", exe, err)
	}
	names := []string{s.target.suffixed()}
	if s.target == s.own {
		names = []string{Name, s.target.suffixed()}
	}
	for _, name := range names {
		path := filepath.Join(filepath.Dir(exe), name)
		err := check(path, s.target)
		if errors.Is(err, fs.ErrNotExist) {
			_, _ = s.next(path, "no such file")
			continue
		}
		return s.checked(path, SourceBeside, err)
	}
	return Helper{}, errNext
}

// checked turns the outcome of check into the outcome of a place.
func (s *search) checked(path string, source Source, err error) (Helper, error) {
	if err != nil {
		return Helper{}, &UnusableError{Path: path, Source: source, Err: err}
	}
	return Helper{
		Path: path, Source: source, GOOS: s.target.goos, GOARCH: s.target.goarch,
		sum: sync.OnceValues(func() (string, error) { return fileSum(path) }),
	}, nil
}
