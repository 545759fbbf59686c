package helperbin

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// program returns the smallest file that passes for a program of the architecture; text makes
// two of them differ.
func program(t *testing.T, goarch, text string) []byte {
	t.Helper()
	m, ok := machineOf(goarch)
	if !ok {
		t.Fatalf("no ELF facts for %s", goarch)
	}
	header := make([]byte, 64)
	copy(header, elf.ELFMAG)
	header[elf.EI_CLASS], header[elf.EI_DATA], header[elf.EI_VERSION] = byte(m.class), byte(m.data), byte(elf.EV_CURRENT)
	var order binary.ByteOrder = binary.LittleEndian
	if m.data == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	order.PutUint16(header[16:], uint16(elf.ET_EXEC))
	order.PutUint16(header[18:], uint16(m.machine))
	order.PutUint32(header[20:], uint32(elf.EV_CURRENT))
	return slices.Concat(header, []byte(text))
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// release returns what a release build would embed.
func release(helpers map[string][]byte) fs.FS {
	files := fstest.MapFS{}
	for name, content := range helpers {
		files[name] = &fstest.MapFile{Data: content}
		files[name+sumSuffix] = &fstest.MapFile{Data: []byte(sumOf(content) + "\n")}
	}
	return files
}

func put(t *testing.T, path string, content []byte, mode fs.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownTarget is what the tests take for the machine's own target, whatever it really is.
func ownTarget() target { return target{"linux", "amd64"} }

func newSearch(t *testing.T, env map[string]string) *search {
	dir := t.TempDir()
	return &search{
		target:   ownTarget(),
		own:      ownTarget(),
		env:      func(name string) string { return env[name] },
		exe:      filepath.Join(dir, "bin", "berth"),
		cacheDir: filepath.Join(dir, "cache"),
		log:      slog.New(slog.DiscardHandler),
	}
}

func TestOrder(t *testing.T) {
	env := map[string]string{}
	s := newSearch(t, env)
	want := func(source Source, content []byte) {
		t.Helper()
		s.looked = nil
		h, err := s.run()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(h.Path)
		if err != nil {
			t.Fatal(err)
		}
		if h.Source != source || string(got) != string(content) {
			t.Errorf("found %s at %s, want %s with its content", h.Source, h.Path, source)
		}
		if !filepath.IsAbs(h.Path) {
			t.Errorf("path %q is not absolute", h.Path)
		}
		if h.GOOS != "linux" || h.GOARCH != "amd64" {
			t.Errorf("found for %s/%s, want linux/amd64", h.GOOS, h.GOARCH)
		}
		for range 2 {
			if sum, err := h.SHA256(); err != nil || sum != sumOf(content) {
				t.Errorf("SHA256() = %s, %v, want %s", sum, err, sumOf(content))
			}
		}
	}

	suffixed := program(t, "amd64", "suffixed")
	put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest-linux-amd64"), suffixed, 0o755)
	want(SourceBeside, suffixed)

	beside := program(t, "amd64", "beside")
	put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), beside, 0o755)
	want(SourceBeside, beside)

	carried := program(t, "amd64", "carried")
	s.embedded = release(map[string][]byte{"berth-guest-linux-amd64": carried})
	want(SourceEmbedded, carried)

	named := program(t, "amd64", "named")
	env[EnvPath] = put(t, filepath.Join(t.TempDir(), "any name"), named, 0o755)
	want(SourceEnv, named)
}

func TestBesideFollowsLinkToProgram(t *testing.T) {
	s := newSearch(t, nil)
	content := program(t, "amd64", "")
	put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), content, 0o755)
	put(t, s.exe, []byte("the program"), 0o755)
	link := filepath.Join(t.TempDir(), "berth")
	if err := os.Symlink(s.exe, link); err != nil {
		t.Fatal(err)
	}
	s.exe = link
	if h, err := s.run(); err != nil || h.Source != SourceBeside {
		t.Errorf("run() = %+v, %v; want the helper beside the link's target", h, err)
	}
}

func TestNotFoundListsEveryPlaceAndTheRemedy(t *testing.T) {
	s := newSearch(t, nil)
	s.embedded = release(map[string][]byte{"berth-guest-linux-arm64": program(t, "arm64", "")})
	_, err := s.run()
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnusable) {
		t.Fatalf("run() error = %v, want a NotFoundError", err)
	}
	if len(notFound.Looked) != 4 {
		t.Errorf("looked at %d places, want 4: %+v", len(notFound.Looked), notFound.Looked)
	}
	for _, part := range []string{
		"linux/amd64", EnvPath + ": not set", "carries none for linux/amd64",
		filepath.Join(filepath.Dir(s.exe), "berth-guest") + ": no such file",
		filepath.Join(filepath.Dir(s.exe), "berth-guest-linux-amd64") + ": no such file",
		"make build",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %q:\n%v", part, err)
		}
	}

	s = newSearch(t, nil)
	if _, err := s.run(); !strings.Contains(err.Error(), "built without embedded helpers") {
		t.Errorf("error does not say that nothing is embedded:\n%v", err)
	}
}

// TestUnusable puts one bad file at every place. A helper that exists and cannot be used ends the
// search with an error, though a good one waits at the next place.
func TestUnusable(t *testing.T) {
	for _, bad := range []struct {
		name string
		make func(t *testing.T, path string)
		is   error  // matched by the error, or nil
		says string // part of the message
	}{
		{"not executable", func(t *testing.T, path string) {
			put(t, path, program(t, "amd64", ""), 0o644)
		}, fs.ErrPermission, "not executable (mode 0644)"},
		{"directory", func(t *testing.T, path string) {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, nil, "not a regular file"},
		{"fifo, which must not be opened", func(t *testing.T, path string) {
			put(t, path, nil, 0o755)
			if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o755)); err != nil {
				t.Fatal(err)
			}
		}, nil, "not a regular file"},
		{"script", func(t *testing.T, path string) {
			put(t, path, []byte("#!/bin/sh\n"), 0o755)
		}, nil, "no ELF program"},
		{"empty", func(t *testing.T, path string) {
			put(t, path, nil, 0o755)
		}, nil, "no ELF program"},
		{"cut short", func(t *testing.T, path string) {
			put(t, path, program(t, "amd64", "")[:30], 0o755)
		}, nil, "no ELF program"},
		{"other architecture", func(t *testing.T, path string) {
			put(t, path, program(t, "arm64", ""), 0o755)
		}, nil, "EM_AARCH64"},
		{"other byte order", func(t *testing.T, path string) {
			put(t, path, program(t, "s390x", ""), 0o755)
		}, nil, "EM_S390"},
		{"object file", func(t *testing.T, path string) {
			content := program(t, "amd64", "")
			content[16] = byte(elf.ET_REL)
			put(t, path, content, 0o755)
		}, nil, "ET_REL"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			check := func(t *testing.T, s *search, source Source, path, remedy string) {
				_, err := s.run()
				var unusable *UnusableError
				if !errors.As(err, &unusable) || !errors.Is(err, ErrUnusable) || errors.Is(err, ErrNotFound) {
					t.Fatalf("error = %v, want an UnusableError", err)
				}
				if unusable.Source != source || unusable.Path != path {
					t.Errorf("blames %s at %s, want %s at %s", unusable.Source, unusable.Path, source, path)
				}
				if bad.is != nil && !errors.Is(err, bad.is) {
					t.Errorf("error does not match %v: %v", bad.is, err)
				}
				for _, part := range []string{bad.says, path, remedy} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error does not say %q: %v", part, err)
					}
				}
			}
			t.Run("environment", func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "helper")
				bad.make(t, path)
				s := newSearch(t, map[string]string{EnvPath: path})
				put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), program(t, "amd64", ""), 0o755)
				check(t, s, SourceEnv, path, EnvPath)
			})
			t.Run("beside", func(t *testing.T) {
				s := newSearch(t, nil)
				path := filepath.Join(filepath.Dir(s.exe), "berth-guest")
				bad.make(t, path)
				put(t, path+"-linux-amd64", program(t, "amd64", ""), 0o755)
				check(t, s, SourceBeside, path, "make build")
			})
		})
	}
}

func TestNamedHelperIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	s := newSearch(t, map[string]string{EnvPath: path})
	put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), program(t, "amd64", ""), 0o755)
	_, err := s.run()
	if !errors.Is(err, ErrUnusable) || !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("error = %v, want an UnusableError matching fs.ErrNotExist that names %s once", err, path)
	}
}

func TestOtherTarget(t *testing.T) {
	amd, arm := program(t, "amd64", ""), program(t, "arm64", "")

	t.Run("variable for the own machine is passed over", func(t *testing.T) {
		path := put(t, filepath.Join(t.TempDir(), "helper"), amd, 0o755)
		s := newSearch(t, map[string]string{EnvPath: path})
		s.target.goarch = "arm64"
		_, err := s.run()
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), EnvPath+"="+path) {
			t.Fatalf("error = %v, want a NotFoundError that mentions %s=%s", err, EnvPath, path)
		}
		put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest-linux-arm64"), arm, 0o755)
		if h, err := s.run(); err != nil || h.Source != SourceBeside || h.GOARCH != "arm64" {
			t.Errorf("run() = %+v, %v; want the one beside the program", h, err)
		}
	})
	t.Run("variable that fits is taken", func(t *testing.T) {
		path := put(t, filepath.Join(t.TempDir(), "helper"), arm, 0o755)
		s := newSearch(t, map[string]string{EnvPath: path})
		s.target.goarch = "arm64"
		if h, err := s.run(); err != nil || h.Path != path {
			t.Errorf("run() = %+v, %v; want %s", h, err, path)
		}
	})
	t.Run("the unsuffixed file is for the own machine only", func(t *testing.T) {
		s := newSearch(t, nil)
		s.target.goarch = "arm64"
		put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), arm, 0o755)
		if _, err := s.run(); !errors.Is(err, ErrNotFound) {
			t.Errorf("error = %v, want a NotFoundError", err)
		}
	})
	t.Run("embedded", func(t *testing.T) {
		s := newSearch(t, nil)
		s.target.goarch = "arm64"
		s.embedded = release(map[string][]byte{"berth-guest-linux-amd64": amd, "berth-guest-linux-arm64": arm})
		h, err := s.run()
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := h.SHA256(); err != nil || sum != sumOf(arm) {
			t.Errorf("SHA256() = %s, %v; want the arm64 helper's", sum, err)
		}
	})
}

func TestFindUsesTheRunningProgramAndEnvironment(t *testing.T) {
	t.Setenv(EnvPath, "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, err = For("plan9", "mips", Options{})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), filepath.Join(filepath.Dir(exe), "berth-guest-plan9-mips")) {
		t.Errorf("error = %v, want one that looked beside %s", err, exe)
	}
	path := put(t, filepath.Join(t.TempDir(), "helper"), program(t, runtime.GOARCH, ""), 0o755)
	t.Setenv(EnvPath, path)
	h, err := Find(Options{})
	if err != nil || h.Path != path || h.GOARCH != runtime.GOARCH {
		t.Errorf("Find() = %+v, %v; want %s", h, err, path)
	}
	again := Helper{Path: path}
	if sum, err := again.SHA256(); err != nil || len(sum) != 64 {
		t.Errorf("SHA256() of a Helper made by hand = %q, %v", sum, err)
	}
}

// TestNoexecMount proves that the mount's rule is seen, not only the mode.
func TestNoexecMount(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "size=1m"); err != nil {
		t.Skipf("cannot mount a file system here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := put(t, filepath.Join(dir, "helper"), program(t, "amd64", ""), 0o755)
	s := newSearch(t, map[string]string{EnvPath: path})
	if _, err := s.run(); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "noexec") {
		t.Errorf("error = %v, want one that mentions noexec", err)
	}

	s = newSearch(t, nil)
	s.cacheDir = filepath.Join(dir, "cache")
	s.embedded = release(map[string][]byte{"berth-guest-linux-amd64": program(t, "amd64", "")})
	if _, err := s.run(); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("error = %v, want one that says how to choose another cache directory", err)
	}
}
