package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/ssh"
)

// BenchmarkAttach stages one file of 2 GiB (64 MiB with -short) in a workspace behind an OpenSSH
// server on this machine, whose hash is compared at both ends, and copies the same file with scp, in
// turns. It reports the throughputs, scp's time divided by ours, and what memory was taken in all.
//
//	go test ./integration/bench -run '^$' -bench Attach -benchtime 1x
func BenchmarkAttach(b *testing.B) {
	size := int64(2 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	dir, ctx := b.TempDir(), b.Context()
	server, err := StartSSH(ctx, dir)
	if errors.Is(err, exec.ErrNotFound) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() }) // after the sandbox, whose end asks the host
	store, fact := attachBig(b, filepath.Join(dir, "media"), size)
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		b.Fatal(err)
	}
	sb := attachSandbox(b, server, dir, ws)
	prep, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{Store: store, CreateBridge: sb.Bridge, Limit: size})
	if err != nil {
		b.Fatal(err)
	}
	source, _, err := store.LocalPath(ctx, fact.Ref)
	if err != nil {
		b.Fatal(err)
	}
	clean := func(context.Context) error {
		return errors.Join(os.RemoveAll(filepath.Join(ws, "media")), os.RemoveAll(filepath.Join(ws, "copy")))
	}
	ours := contender{name: "ours", after: clean, run: func(ctx context.Context) error {
		n, err := prep.Prepare(ctx, attachments.TurnFiles{Files: []attachments.MediaFact{fact}})
		if err == nil && n.Files[0].Outcome != attachments.Staged {
			err = errors.New("the file was there already")
		}
		return err
	}}
	scp := contender{name: "scp", after: clean, run: func(ctx context.Context) error {
		return runQuiet(exec.CommandContext(ctx, "scp", "-q", "-F", server.Config, source, sshHost+":"+ws+"/copy"))
	}}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		results, err := race(ctx, 2, 0, ours, scp)
		if err = errors.Join(err, results[0].err, results[1].err); err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		row, err := compare(Row{}, Speed, results[0], results[1])
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(ratio(Speed, row.Ours, row.Theirs), "times-scp")
		b.ReportMetric(results[0].times.throughput(size).P50/1e6, "MB/s")
		b.ReportMetric(results[1].times.throughput(size).P50/1e6, "scp-MB/s")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "MiB-taken")
	}
}

// attachBig makes a media store with one large file.
func attachBig(b *testing.B, dir string, size int64) (*mediastore.Store, attachments.MediaFact) {
	b.Helper()
	store, err := mediastore.Open(mediastore.Options{Dir: dir, Limit: size})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	ref, err := store.IngestReader(b.Context(), io.Reader(&pattern{block: noise(1 << 20), left: size}), size, mediastore.Facts{Name: "big.bin"})
	if err != nil {
		b.Fatal(err)
	}
	return store, attachments.FactOf(ref)
}

// attachSandbox is a workspace behind the server.
func attachSandbox(b *testing.B, server *SSHServer, dir, ws string) sandbox.Sandbox {
	b.Helper()
	helper := filepath.Join(dir, helperbin.Name)
	build := exec.CommandContext(b.Context(), "go", "build", "-ldflags=-s -w", "-o", helper, "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	backend, err := ssh.New(ssh.Options{
		StateDir: filepath.Join(dir, "state"), Getenv: func(string) string { return "" },
		Helper: func(arch string) (helperbin.Helper, error) {
			return helperbin.For("linux", arch, helperbin.Options{Env: func(name string) string {
				if name == helperbin.EnvPath {
					return helper
				}
				return ""
			}})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	cfg := ssh.DefaultConfig()
	cfg.SSH, cfg.SSHConfig = sshHost, server.Config
	sb, err := backend.Ensure(b.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "attach", Workspace: ws, Config: cfg})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = sb.Close() })
	return sb
}
