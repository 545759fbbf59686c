package ssh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
)

// forget removes the directories that a host falls back to for an account.
func forget(t *testing.T, account *sshtest.Account) {
	t.Helper()
	all := func() {
		for _, dir := range []string{"/var/tmp", "/tmp", "/dev/shm"} {
			_ = os.RemoveAll(fmt.Sprintf("%s/workberth-%d", dir, account.UID)) // there may be none
		}
	}
	all()
	t.Cleanup(all)
}

// A host that cannot hold the whole helper takes no part of it for commands.
func TestFullHost(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{})
	forget(t, account)
	r := newRig(t, sshtest.Options{Account: account, NoSFTP: true, ForceWrapper: "#!/bin/sh\nulimit -f 200\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n"})
	// Every line of the helper would leave a trace.
	trace := filepath.Join(account.Home, "trace")
	helper := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(helper, []byte(strings.Repeat("echo >"+trace+"\n", 200_000)), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r.opts.Helper = func(string) (helperbin.Helper, error) { return helperbin.Helper{Path: helper}, nil }
	_, err := r.Ensure(r.ctx, r.spec(DefaultWorkspace))
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "did not arrive whole") || strings.Contains(fmt.Sprint(err), "\n") {
		t.Errorf("Ensure: %v", err)
	}
	if _, err := os.Lstat(trace); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the host ran parts of the helper: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(account.Home, ".cache/workberth/.new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// Whatever stands in the helper's place is replaced; a directory that others may use is
// closed to them, and one that is not the account's own is left alone.
func TestHelperPlace(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{})
	forget(t, account)
	r := newRig(t, sshtest.Options{Account: account})
	use := func() {
		t.Helper()
		sb := r.ensure(DefaultWorkspace)
		r.run(sb, "true")
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
		<-sb.Done()
	}
	use()
	cache := filepath.Join(account.Home, ".cache/workberth")
	placed, err := filepath.Glob(filepath.Join(cache, "berth-guest-*"))
	if err != nil || len(placed) != 1 {
		t.Fatalf("helpers %q, %v", placed, err)
	}
	helper := placed[0]
	copied := filepath.Join(account.Home, "copy")
	own := func(path string) error { return os.Lchown(path, account.UID, account.GID) }
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"directory", func() error {
			return errors.Join(os.Remove(helper), os.Mkdir(helper, 0o700), own(helper), os.WriteFile(helper+"/x", nil, 0o600))
		}},
		{"FIFO", func() error { return errors.Join(os.Remove(helper), syscall.Mkfifo(helper, 0o700), own(helper)) }},
		{"link to a directory", func() error { return errors.Join(os.Remove(helper), os.Symlink("/tmp", helper)) }},
		{"link to the helper", func() error { return errors.Join(os.Rename(helper, copied), os.Symlink(copied, helper)) }},
		{"open to others", func() error { return os.Chmod(cache, 0o777) }}, //nolint:gosec // on purpose
	} {
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		use()
		if info, err := os.Lstat(helper); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: the helper is %v, %v", c.name, info, err)
		}
		if info, err := os.Lstat(cache); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: its directory is %v, %v", c.name, info, err)
		}
	}
	// Not the account's own: the next directory serves.
	aside := filepath.Join(account.Home, "aside")
	fallback := filepath.Join(fallbackCache(account.UID), filepath.Base(helper))
	for name, change := range map[string]func() error{
		"of another user": func() error { return os.Chown(cache, 0, 0) },
		"a link":          func() error { return errors.Join(os.Rename(cache, aside), os.Symlink(aside, cache)) },
	} {
		_ = os.RemoveAll(filepath.Dir(fallback)) // there may be none
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		use()
		if _, err := os.Lstat(fallback); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(cache) // the link
		_ = os.Rename(aside, cache)
		if err := own(cache); err != nil {
			t.Fatal(err)
		}
	}
}

// liar is a host's shell that finds the mark of a call and answers as it likes.
func liar(answers string) string {
	return "#!/bin/sh\nwhile IFS= read -r l; do\n case $l in \"berth '\"*) m=${l#berth \\'}; m=${m%%\\'*}; break ;; esac\ndone\n" +
		"say() { printf \"berth:$m $1\\n\"; }\nE='\\033]0;owned\\007\\033[2J\\302\\2332J\\342\\200\\256'\n" +
		"case $l in *\"'place'\"*) say \"${place:-unusable $E}\"; exit ;; esac\n" + answers
}

// A host that lies gets no further than an error in one line that a terminal can show. C105
func TestLyingHost(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]string{
		"system":              `say "alien $E $E"`,
		"architecture":        `say "missing $E"`,
		"another one":         `say "missing riscv64"`,
		"caches":              `say "cache /$E"; say "missing amd64"`,
		"many caches":         `i=0; while [ $i -lt 250 ]; do say "cache /nowhere/$i"; i=$((i+1)); done; say "missing amd64"`,
		"a word":              `say "$E"`,
		"ready, and no words": `say ready`,
		"workspace":           `say "arch amd64"; say "workspace /$E"; say ready; head -c 100000 /dev/zero`,
		"other architecture":  `say "arch $E"; say "workspace /tmp"; say ready; head -c 100000 /dev/zero`,
		"messages":            `printf "$E" >&2; exit 1`,
		"endless messages":    `head -c 3000000 /dev/zero | tr '\0' '\033' >&2; exit 1`,
		"a line as message":   `head -c 60000 /dev/zero | tr '\0' '\033'; exit 1`,
		"absent":              `say "absent $E"`,
		"garbage as greeting": `say "arch amd64"; say "workspace /tmp"; say ready; head -c 3000000 /dev/urandom`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sshtest.Options{NoSFTP: true, ForceWrapper: liar(answers)})
			_, err := r.Ensure(r.ctx, r.spec(t.TempDir()))
			var p *sandbox.Problem
			if !errors.As(err, &p) {
				t.Fatalf("Ensure: %v", err)
			}
			shown(t, err.Error())
			check := r.CheckHost(r.ctx, "host", r.config)
			shown(t, check.Detail+check.Remedy)
			shown(t, strings.ReplaceAll(r.log.String(), "\n", ""))
			if n := strings.Count(r.server.Log(), "Starting session"); n > 40 {
				t.Errorf("%d sessions", n)
			}
		})
	}
}

// shown fails for what is no line for a terminal.
func shown(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%.2000q has %q", text, text[i:min(i+10, len(text))])
	}
	if len(text) > 20_000 {
		t.Errorf("%d bytes", len(text))
	}
}

// An SFTP server that falls silent before the files are reached keeps nobody waiting.
func TestSilentSFTP(t *testing.T) {
	for name, greeting := range map[string]string{"at once": "", "after its greeting": `printf '\0\0\0\5\2\0\0\0\3'`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sshtest.Options{ForceWrapper: "#!/bin/sh\ncase $SSH_ORIGINAL_COMMAND in 'exec /bin/sh') exit 1 ;; esac\n" + greeting + "\nexec cat >/dev/null\n"})
			ctx, cancel := context.WithTimeout(r.ctx, 3*time.Second)
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := r.Ensure(ctx, r.spec(DefaultWorkspace))
				failed <- err
			}()
			select {
			case err := <-failed:
				if err == nil {
					t.Error("it answers")
				}
			case <-time.After(20 * time.Second):
				t.Error("Ensure does not return")
			}
		})
	}
}

// A seed with what cannot be copied: it is left out and told, and nothing waits for it. C011
func TestOddSeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	dir := files(t, "a\nb", "\x1b[2J", "plain", "-rf", "sub/ \xff", ".berth-seed-x")
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3)); err != nil {
		t.Skip(err)
	}
	sb := r.ensure(filepath.Join(t.TempDir(), "ws"), seeded(dir))
	if got := strings.TrimSpace(r.run(sb, "/bin/sh", "-c", `find . -type f | tr -dc '\n' | wc -l; find . ! -type f ! -type d`)); got != "7" {
		t.Errorf("copied: %q", got) // seven breaks for six files, as one has one in its name
	}
	left := sb.Info().Runtime["seedLeftOut"]
	if !strings.Contains(left, "fifo") || !strings.Contains(left, "null") {
		t.Errorf("left out: %q", left)
	}
	shown(t, left)
}
