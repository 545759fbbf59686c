package attachments_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/helperbin"
)

// stageEnv has the arguments of a process that is to be killed.
const stageEnv = "ATTACHMENTS_TEST_STAGE"

// stageForever stages one reference: kind, store, root, workspace, helper, reference.
func stageForever(args []string) int {
	ctx := context.Background()
	s, err := mediastore.Open(mediastore.Options{Dir: args[1]})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	var open fsbridge.Factory = localFactory(args[3])
	if args[0] == "bubblewrap" {
		sb, err := bubblewrapSandbox(ctx, args[2], args[4], args[3])
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		open = sb.Bridge
	}
	p, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{Store: s, CreateBridge: open, Progress: func(p attachments.Progress) {
		fmt.Println("sent", p.Sent)
		time.Sleep(time.Millisecond) //sleep: the transfer is to last until it is killed
	}})
	if err == nil {
		_, err = p.Prepare(ctx, turn(attachments.MediaFact{Ref: mediastore.RefID(args[5]), Name: "a.bin"}))
	}
	fmt.Println("end", err)
	return 0
}

// kill -9 of the process in the middle of a transfer: nothing half is seen under the file's name, and
// the next call completes it. ATT-21 ATT-25
func TestKilledWhileStaging(t *testing.T) {
	for _, kind := range []string{"local", "bubblewrap"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, 0)
			data := strings.Repeat("0123456789abcdef", 2<<20)
			f := ingest(t, s, "a.bin", "", data)
			root, err := os.MkdirTemp("", "ak-") // short: a socket's path is bounded
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(root) })
			ws := filepath.Join(root, "ws")
			if err := os.Mkdir(ws, 0o755); err != nil {
				t.Fatal(err)
			}
			helper, err := helperDir()
			if err != nil {
				t.Fatal(err)
			}
			if kind == "bubblewrap" {
				_, err := exec.LookPath("bwrap")
				need(t, "bubblewrap is not installed", err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), stageEnv+"="+strings.Join([]string{kind, s.Dir(), root, ws, filepath.Join(helper, helperbin.Name), string(f.Ref)}, "\n"))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines, sent := bufio.NewScanner(out), 0
			for lines.Scan() {
				if _, err := fmt.Sscanf(lines.Text(), "sent %d", &sent); err != nil || sent > len(data)/4 {
					break
				}
			}
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
			if sent <= len(data)/4 || sent == len(data) {
				t.Fatalf("killed after %d bytes: %s", sent, lines.Text())
			}
			if _, err := os.Lstat(filepath.Join(ws, staged("a.bin", data))); err == nil {
				t.Error("the name was given to half a file")
			}
			prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: localFactory(ws)})
			n, err := prep.Prepare(t.Context(), turn(f))
			if err != nil || n.Files[0].WorkspacePath != staged("a.bin", data) {
				t.Fatalf("%+v, %v", n, err)
			}
			if got, err := os.ReadFile(filepath.Join(ws, staged("a.bin", data))); string(got) != data {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// 64 MiB travel in constant memory. ATT-22
func TestConstantMemory(t *testing.T) {
	const size = 64 << 20
	s := openStore(t, size)
	r, err := s.IngestReader(t.Context(), &limitedZeros{size}, size, mediastore.Facts{Name: "big"})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	for _, p := range []place{localPlace(t), bubblewrapPlace(t)} {
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open, Limit: size})
		runtime.ReadMemStats(&before)
		if _, err := prep.Prepare(t.Context(), turn(attachments.FactOf(r))); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
			t.Errorf("%d bytes of memory were taken for a file of %d", used, size)
		} else {
			t.Logf("%d bytes of memory were taken in total", used)
		}
	}
}

type limitedZeros struct{ left int }

func (z *limitedZeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, fmt.Errorf("read beyond the end")
	}
	n := min(len(p), z.left)
	clear(p[:n])
	z.left -= n
	if z.left == 0 {
		return n, io.EOF
	}
	return n, nil
}
