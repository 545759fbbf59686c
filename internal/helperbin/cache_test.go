package helperbin

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// carrying returns a search with one embedded helper and the place of its file.
func carrying(t *testing.T, content []byte) (s *search, path string) {
	s = newSearch(t, nil)
	s.embedded = release(map[string][]byte{"berth-guest-linux-amd64": content})
	return s, filepath.Join(s.cacheDir, "helper", sumOf(content), "berth-guest")
}

func mustRun(t *testing.T, s *search) Helper {
	t.Helper()
	h, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestCachePlacesOncePrivately(t *testing.T) {
	s, path := carrying(t, program(t, "amd64", ""))
	if h := mustRun(t, s); h.Path != path || h.Source != SourceEmbedded {
		t.Fatalf("found %s at %s, want it embedded at %s", h.Source, h.Path, path)
	}
	for dir := filepath.Dir(path); len(dir) >= len(s.cacheDir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want mode 0700", dir, info, err)
		}
	}
	before, err := os.Stat(path)
	if err != nil || before.Mode() != 0o555 {
		t.Fatalf("%s: %v, %v; want mode 0555", path, before, err)
	}
	mustRun(t, s)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the second search wrote the file again (%v)", err)
	}
}

func TestCacheKeepsOtherContents(t *testing.T) {
	s, first := carrying(t, program(t, "amd64", "old"))
	mustRun(t, s)
	updated := program(t, "amd64", "new")
	s.embedded = release(map[string][]byte{"berth-guest-linux-amd64": updated})
	if h := mustRun(t, s); h.Path == first {
		t.Error("new content was placed over old content")
	}
	if _, err := os.Stat(first); err != nil {
		t.Errorf("old content, which a container may have mounted, is gone: %v", err)
	}
}

// TestCacheRepairs spoils the cached file in every way that could mislead, and expects the true
// content at the place afterwards, and a warning that says why.
func TestCacheRepairs(t *testing.T) {
	content := program(t, "amd64", strings.Repeat("0123456789abcdef", 40_000)) // several read buffers
	spoil := func(change func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			put(t, path, change(bytes.Clone(content)), programMode)
		}
	}
	for _, tc := range []struct {
		name   string
		spoil  func(t *testing.T, path string)
		reason string
	}{
		{"last byte", spoil(func(b []byte) []byte { b[len(b)-1]++; return b }), "different content"},
		{"first byte", spoil(func(b []byte) []byte { b[0]++; return b }), "different content"},
		{"cut", spoil(func(b []byte) []byte { return b[:len(b)-1] }), "bytes instead of"},
		{"longer", spoil(func(b []byte) []byte { return append(b, 0) }), "bytes instead of"},
		{"empty", spoil(func([]byte) []byte { return nil }), "0 bytes instead of"},
		{"writable", func(t *testing.T, path string) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "mode"},
		{"setuid", func(t *testing.T, path string) {
			if err := os.Chmod(path, 0o555|os.ModeSetuid); err != nil {
				t.Fatal(err)
			}
		}, "mode"},
		{"link to the same content", func(t *testing.T, path string) {
			elsewhere := put(t, filepath.Join(t.TempDir(), "copy"), content, programMode)
			if err := errors.Join(os.Remove(path), os.Symlink(elsewhere, path)); err != nil {
				t.Fatal(err)
			}
		}, "symbolic links"},
		{"owned by another user", func(t *testing.T, path string) {
			if os.Geteuid() != 0 {
				t.Skip("needs root to give a file away")
			}
			if err := os.Chown(path, 4242, -1); err != nil {
				t.Fatal(err)
			}
		}, "owned by user 4242"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			s, path := carrying(t, content)
			s.log = slog.New(slog.NewTextHandler(&log, nil))
			mustRun(t, s)
			if log.Len() != 0 {
				t.Errorf("the first search warned: %s", &log)
			}
			tc.spoil(t, path)
			mustRun(t, s)
			if err := differs(path, content); err != nil {
				t.Errorf("not repaired: %v", err)
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), tc.reason) {
				t.Errorf("log = %q, want a warning with %q", &log, tc.reason)
			}
		})
	}
}

func TestCacheRemovesWhatAKilledWriterLeft(t *testing.T) {
	s, path := carrying(t, program(t, "amd64", ""))
	left := put(t, filepath.Join(filepath.Dir(path), tempPrefix+"123"), []byte("half"), 0o600)
	mustRun(t, s)
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", left, err)
	}
}

// TestCacheRefusesForeignDirectories makes each directory on the way one that another user could
// use to exchange the helper.
func TestCacheRefusesForeignDirectories(t *testing.T) {
	content := program(t, "amd64", "")
	for level, name := range []string{"cache directory", "helper", "sum"} {
		for _, tc := range []struct {
			name  string
			spoil func(t *testing.T, dir string)
			says  string
		}{
			{"writable by the group", func(t *testing.T, dir string) {
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o720)); err != nil {
					t.Fatal(err)
				}
			}, "can be written by other users"},
			{"writable by all", func(t *testing.T, dir string) {
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
					t.Fatal(err)
				}
			}, "can be written by other users"},
			{"of another user", func(t *testing.T, dir string) {
				if os.Geteuid() != 0 {
					t.Skip("needs root to give a directory away")
				}
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, 4242, -1)); err != nil {
					t.Fatal(err)
				}
			}, "belongs to user 4242"},
			{"a file", func(t *testing.T, dir string) {
				put(t, dir, nil, 0o600)
			}, "not a directory|is no directory"},
			{"a link to a foreign directory", func(t *testing.T, dir string) {
				elsewhere := t.TempDir()
				if err := errors.Join(os.Chmod(elsewhere, 0o777), os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink(elsewhere, dir)); err != nil {
					t.Fatal(err)
				}
			}, "can be written by other users|is no directory"},
		} {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				s, path := carrying(t, content)
				dirs := []string{s.cacheDir, filepath.Join(s.cacheDir, "helper"), filepath.Dir(path)}
				tc.spoil(t, dirs[level])
				_, err := s.run()
				if err == nil {
					t.Fatalf("%s was accepted", dirs[level])
				}
				said := false
				for part := range strings.SplitSeq(tc.says, "|") {
					said = said || strings.Contains(err.Error(), part)
				}
				if !said {
					t.Errorf("error = %v, want it to say %q", err, tc.says)
				}
				if _, err := os.Lstat(path); level < 2 && err == nil {
					t.Error("the helper was written all the same")
				}
			})
		}
	}
}

// TestCacheDirMayBeALink lets the user move the cache to another disk.
func TestCacheDirMayBeALink(t *testing.T) {
	s, _ := carrying(t, program(t, "amd64", ""))
	elsewhere := t.TempDir()
	if err := errors.Join(os.Chmod(elsewhere, 0o700), os.Symlink(elsewhere, s.cacheDir)); err != nil {
		t.Fatal(err)
	}
	if h := mustRun(t, s); !strings.HasPrefix(h.Path, elsewhere+"/") {
		t.Errorf("path = %s, want the resolved one below %s", h.Path, elsewhere)
	}
}

// TestConcurrentStarts starts many searches at once, over a good, a missing and a spoilt cache.
func TestConcurrentStarts(t *testing.T) {
	content := program(t, "amd64", strings.Repeat("x", 1<<20))
	s, path := carrying(t, content)
	for round := range 6 {
		switch round % 3 {
		case 1:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("spoilt"), 0); err != nil {
				t.Fatal(err)
			}
		}
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				<-start
				mine := *s
				h, err := mine.run()
				if err != nil {
					t.Error(err)
					return
				}
				if err := differs(h.Path, content); err != nil {
					t.Errorf("handed out while wrong: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v; want the helper alone", entries, err)
	}
}

// TestStartsWhileOthersWrite starts each freshly written helper at once, while other goroutines
// write theirs and fork: none may be found busy.
func TestStartsWhileOthersWrite(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	target := target{"linux", runtime.GOARCH}
	files := release(map[string][]byte{target.suffixed(): content})
	dir := t.TempDir()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for round := range 3 {
				s := &search{
					target: target, own: target, embedded: files,
					env:      func(string) string { return "" },
					cacheDir: filepath.Join(dir, strconv.Itoa(worker), strconv.Itoa(round)),
					log:      slog.New(slog.DiscardHandler),
				}
				h, err := s.run()
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := exec.CommandContext(t.Context(), h.Path, "-test.run=^$").CombinedOutput(); err != nil {
					t.Errorf("start %s: %v\n%s", h.Path, err, out)
				}
				if err := os.Remove(h.Path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestDefaultCacheDir(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"XDG_CACHE_HOME", map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/workberth"},
		{"relative XDG_CACHE_HOME is ignored, as its specification asks", map[string]string{"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/workberth"},
		{"HOME", map[string]string{"HOME": "/h"}, "/h/.cache/workberth"},
		{"neither", nil, filepath.Join(os.TempDir(), "workberth-"+strconv.Itoa(os.Geteuid()))},
		{"relative HOME", map[string]string{"HOME": "h"}, filepath.Join(os.TempDir(), "workberth-"+strconv.Itoa(os.Geteuid()))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := defaultCacheDir(func(name string) string { return tc.env[name] }); got != tc.want {
				t.Errorf("defaultCacheDir() = %q, want %q", got, tc.want)
			}
		})
	}
	s, _ := carrying(t, program(t, "amd64", ""))
	home := t.TempDir()
	s.cacheDir, s.env = "", func(name string) string { return map[string]string{"HOME": home}[name] }
	if h := mustRun(t, s); !strings.HasPrefix(h.Path, home+"/.cache/workberth/helper/") {
		t.Errorf("path = %s, want one below the user's cache directory", h.Path)
	}
}

func TestReadEmbeddedRefusesABrokenBuild(t *testing.T) {
	content := program(t, "amd64", "")
	for _, tc := range []struct {
		name  string
		files fstest.MapFS
	}{
		{"no sum", fstest.MapFS{"berth-guest-linux-amd64": {Data: content}}},
		{"sum is no sum", fstest.MapFS{"berth-guest-linux-amd64": {Data: content}, "berth-guest-linux-amd64.sha256": {Data: []byte("../../etc")}}},
		{"sum in capitals", fstest.MapFS{"berth-guest-linux-amd64": {Data: content}, "berth-guest-linux-amd64.sha256": {Data: []byte(strings.ToUpper(sumOf(content)))}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSearch(t, nil)
			s.embedded = tc.files
			put(t, filepath.Join(filepath.Dir(s.exe), "berth-guest"), content, 0o755)
			_, err := s.run()
			if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make release") {
				t.Errorf("error = %v, want one that says how to build", err)
			}
		})
	}
}
