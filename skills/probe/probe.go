// Package probe has the probers that tell what a machine has for the requirements of skills:
// [Here] for this machine, [Shell] for one that runs commands, [Path] for one whose files can be
// seen and that has no shell.
//
// [In] puts the last two together for a sandbox.
package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// ErrNoShell is what a Run gives when there is no program of that name.
var ErrNoShell = errors.New("there is no shell")

// ErrNoCommands is what a Run gives where the machine runs no commands at all.
var ErrNoCommands = errors.New("it runs no commands")

// Here asks this machine.
type Here struct {
	// Getenv reads the environment.
	Getenv func(string) string
}

// Probe implements skills.Prober.
func (h Here) Probe(_ context.Context, ask skills.Request) (skills.Facts, error) {
	f := empty(ask)
	f.Platform = runtime.GOOS
	for _, b := range ask.Binaries {
		_, err := exec.LookPath(b)
		f.Binaries[b] = err == nil
	}
	for _, e := range ask.Env {
		f.Env[e] = h.Getenv(e) != ""
	}
	return f, nil
}

// empty are facts by which nothing that was asked for is there.
func empty(ask skills.Request) skills.Facts {
	f := skills.Facts{Binaries: map[string]bool{}, Env: map[string]bool{}}
	for _, b := range ask.Binaries {
		f.Binaries[b] = false
	}
	for _, e := range ask.Env {
		f.Env[e] = false
	}
	return f
}

// Run runs a command on the machine and returns its standard output. A program that does not
// exist is ErrNoShell; an exit code other than zero is an error.
type Run func(ctx context.Context, argv []string) ([]byte, error)

// Shell asks with one command, whatever is asked for (with a few at the same time where it is more
// than 100 kB of names). Nothing of a skill is part of the script: names are arguments.
type Shell struct {
	Run Run
	// Platform is the system where the machine has no uname to say it.
	Platform string
}

// own begins the variables of the script, which are no answer.
const own = "_berth_"

// script prints one line for the system and one for each name that is there. Its first argument is
// the number of programs among the others.
const script = `_berth_n=$1; shift
echo "system $(uname -s 2>/dev/null)"
for _berth_x do
  if [ "$_berth_n" -gt 0 ]; then
    _berth_n=$((_berth_n-1))
    IFS=:
    for _berth_d in $PATH; do
      if [ -f "${_berth_d:-.}/$_berth_x" ] && [ -x "${_berth_d:-.}/$_berth_x" ]; then echo "bin $_berth_x"; break; fi
    done
    unset IFS
  else
    eval "_berth_v=\${$_berth_x:-}"
    [ -z "$_berth_v" ] || echo "env $_berth_x"
  fi
done
echo end`

// Probe implements skills.Prober. Keeps SKL-04.
func (s Shell) Probe(ctx context.Context, ask skills.Request) (skills.Facts, error) {
	if err := valid(ask); err != nil {
		return skills.Facts{}, err
	}
	parts := split(ask)
	outs, errs := make([][]byte, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() {
			argv := append([]string{"sh", "-c", script, "sh", fmt.Sprint(len(part.Binaries))}, part.Binaries...)
			outs[i], errs[i] = s.Run(ctx, append(argv, part.Env...))
		})
	}
	wg.Wait()
	f := empty(ask)
	for i := range parts {
		if errs[i] != nil {
			return skills.Facts{}, errs[i]
		}
		if err := s.answer(outs[i], &f); err != nil {
			return skills.Facts{}, err
		}
	}
	return f, nil
}

// answer adds what one command has answered to the facts.
func (s Shell) answer(out []byte, f *skills.Facts) error {
	whole := false
	for line := range bytes.Lines(out) {
		kind, name, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		switch kind {
		case "system":
			f.Platform = cmp.Or(system(name), s.Platform)
		case "bin":
			if _, asked := f.Binaries[name]; asked {
				f.Binaries[name] = true
			}
		case "env":
			if _, asked := f.Env[name]; asked && !strings.HasPrefix(name, own) {
				f.Env[name] = true
			}
		case "end":
			whole = true
		}
	}
	if !whole {
		return errors.New("the answer of its shell was cut short")
	}
	return nil
}

// maxNames bounds the names of one command, in bytes: systems bound its arguments.
const maxNames = 100_000

// split makes parts of a request that fit into a command each; there is at least one.
func split(ask skills.Request) []skills.Request {
	parts, size := []skills.Request{{}}, 0
	add := func(name string, to func(*skills.Request) *[]string) {
		if size += len(name) + 1; size > maxNames {
			parts, size = append(parts, skills.Request{}), len(name)+1
		}
		list := to(&parts[len(parts)-1])
		*list = append(*list, name)
	}
	for _, b := range ask.Binaries {
		add(b, func(r *skills.Request) *[]string { return &r.Binaries })
	}
	for _, e := range ask.Env {
		add(e, func(r *skills.Request) *[]string { return &r.Env })
	}
	return parts
}

// valid refuses names that a shell could take for something else.
func valid(ask skills.Request) error {
	name := func(s string, more string) bool {
		return s != "" && len(s) <= 128 && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(more, r))
		}) < 0
	}
	for _, b := range ask.Binaries {
		if !name(b, "_+.-") {
			return fmt.Errorf("%q is no name of a program: %w", b, fs.ErrInvalid)
		}
	}
	for _, e := range ask.Env {
		if !name(e, "_") || e[0] >= '0' && e[0] <= '9' {
			return fmt.Errorf("%q is no name of a variable: %w", e, fs.ErrInvalid)
		}
	}
	return nil
}

// system spells what uname says as Go does.
func system(uname string) string {
	s := strings.ToLower(uname)
	if strings.HasPrefix(s, "mingw") || strings.HasPrefix(s, "msys") || strings.HasPrefix(s, "cygwin") {
		return "windows"
	}
	return s
}

// DefaultPath are the directories that programs are looked for in where nobody says which.
func DefaultPath() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// Path looks for programs by their files, for images without a shell. It sees files alone, so the
// platform and the variables are what it is told.
type Path struct {
	Bridge fsbridge.Bridge
	// Dirs are searched for programs; nil means DefaultPath.
	Dirs     []string
	Platform string
	// Env are the variables that commands there have.
	Env map[string]string
}

// Probe implements skills.Prober. All files are asked for at once.
func (p Path) Probe(ctx context.Context, ask skills.Request) (skills.Facts, error) {
	f := empty(ask)
	f.Platform = p.Platform
	for _, e := range ask.Env {
		f.Env[e] = p.Env[e] != ""
	}
	dirs := p.Dirs
	if dirs == nil {
		dirs = DefaultPath()
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	turns := make(chan struct{}, 1000)
	for _, b := range ask.Binaries {
		for _, d := range dirs {
			turns <- struct{}{}
			wg.Go(func() {
				defer func() { <-turns }()
				info, err := p.Bridge.Stat(ctx, path.Join(d, b))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					f.Binaries[b] = f.Binaries[b] || info.IsRegular() && info.Mode&0o111 != 0
				} else if !absent(err) {
					errs = append(errs, err)
				}
			})
		}
	}
	wg.Wait()
	if len(errs) > 0 {
		return skills.Facts{}, errs[0]
	}
	return f, nil
}

// absent reports whether an error says that a file is not there for us.
func absent(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, fsbridge.ErrOutsideRoot, syscall.ENOTDIR}, func(e error) bool { return errors.Is(err, e) })
}

// Either asks with a command and, where there is no shell, by files. Where no commands run, nothing
// is there.
type Either struct {
	Shell Shell
	Path  Path
}

// Probe implements skills.Prober.
func (e Either) Probe(ctx context.Context, ask skills.Request) (skills.Facts, error) {
	f, err := e.Shell.Probe(ctx, ask)
	switch {
	case errors.Is(err, ErrNoShell):
		return e.Path.Probe(ctx, ask)
	case errors.Is(err, ErrNoCommands):
		return empty(ask), nil
	}
	return f, err
}
