package attachments

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/sandboxtest"
)

// large is what is on its way when something dies.
func large() string { return strings.Repeat("0123456789abcdef", 1<<20) }

// finished are the files below a directory, without what a cut write over SFTP alone leaves, under a name
// of its own.
func finished(t *testing.T, root string) map[string]string {
	t.Helper()
	files := sandboxtest.Tree(t, root)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(path.Base(name), ".berth-sftp-") })
	return files
}

// interrupted checks that nothing of the file is in the workspace, and that the next turn stages it.
func interrupted(t *testing.T, root string, s *mediastore.Store, f attachments.MediaFact, data string, open fsbridge.Factory) {
	t.Helper()
	if left := finished(t, root); len(left) > 0 {
		t.Errorf("left: %q", slices.Sorted(maps.Keys(left)))
	}
	n, err := preparer(t, s, open).Prepare(t.Context(), turn(f))
	if err != nil || n.Files[0].Outcome != attachments.Staged {
		t.Fatalf("the next turn: %+v, %v", n, err)
	}
	if is := finished(t, root); len(is) != 1 || is[staged("a.bin", data)] != data {
		t.Errorf("the next turn leaves %q", slices.Sorted(maps.Keys(is)))
	}
}

// The connection is cut, or the helper or its whole container killed, in the middle of a transfer: no
// path is told, no part of the file is left under a name, and the next turn completes it. ATT-21 ATT-25
func TestCutWhileStaging(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*sandboxtest.Place){"cut": (*sandboxtest.Place).Cut, "helper killed": func(p *sandboxtest.Place) { p.KillHelper() }}
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for _, kind := range append(sandboxtest.Kinds(), sandboxtest.FilesOnly) {
				if way == "cut" && !kind.Overland() || way != "cut" && kind == sandboxtest.FilesOnly || testing.Short() && kind != sandboxtest.Host && kind != sandboxtest.Podman {
					continue
				}
				t.Run(string(kind), func(t *testing.T) {
					t.Parallel()
					p, s, data := sandboxtest.New(t, kind), openStore(t), large()
					f := ingest(t, s, "a.bin", data)
					sb, c, err := p.Open(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					ended := false
					prep := preparer(t, s, sb.Bridge, func(o *attachments.WorkspaceOptions) {
						o.Progress = func(pr attachments.Progress) {
							if pr.Sent > 4<<20 && !ended {
								ended = true
								end(p)
							}
						}
					})
					n, err := prep.Prepare(t.Context(), turn(f))
					_ = c.Close() // it is gone
					if !ended || !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() {
						t.Fatalf("%+v, %v", n, err)
					}
					if !errors.Is(err, fsbridge.ErrOutcomeUnknown) && !errors.Is(err, fsbridge.ErrUnavailable) {
						t.Errorf("error %v", err)
					}
					interrupted(t, p.Root, s, f, data, p.Sandbox(t).Bridge)
				})
			}
		})
	}
}

// stageEnv has what a process that is to be killed stages, as JSON.
const stageEnv = "ATTACHMENTS_TEST_STAGE"

// stageArgs are a store, a reference in it, and where it goes: a directory, or a sandbox.
type stageArgs struct {
	Store string
	Ref   mediastore.RefID
	Root  string
	Place *sandboxtest.Place
}

// stage is the process. It tells how much it has sent.
func stage(text string) int {
	err := func() error {
		var a stageArgs
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return err
		}
		s, err := mediastore.Open(mediastore.Options{Dir: a.Store})
		if err != nil {
			return err
		}
		open := localFactory(a.Root)
		if a.Place != nil {
			sb, _, err := a.Place.Open(context.Background())
			if err != nil {
				return err
			}
			open = sb.Bridge
		}
		p, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{Store: s, CreateBridge: open, Progress: func(p attachments.Progress) {
			fmt.Fprintln(os.Stdout, "sent", p.Sent)
			time.Sleep(time.Millisecond) //sleep: the transfer is to last until it is killed
		}})
		if err == nil {
			_, err = p.Prepare(context.Background(), turn(attachments.MediaFact{Ref: a.Ref, Name: "a.bin"}))
		}
		return err
	}()
	fmt.Fprintln(os.Stdout, "end", err)
	return 0
}

func localFactory(root string) fsbridge.Factory {
	return func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return local.New(local.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}, Assert: assert})
	}
}

// kill -9 of the sending process in the middle of a transfer: the same. ATT-21 ATT-25
func TestSenderKilled(t *testing.T) {
	t.Parallel()
	kinds := append([]sandboxtest.Kind{"local"}, sandboxtest.Kinds()...)
	kinds = append(kinds, sandboxtest.FilesOnly)
	if testing.Short() {
		kinds = []sandboxtest.Kind{"local", sandboxtest.Docker}
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s, data := openStore(t), large()
			f := ingest(t, s, "a.bin", data)
			args := stageArgs{Store: s.Dir(), Ref: f.Ref}
			if kind == "local" {
				args.Root = t.TempDir()
			} else {
				args.Place = sandboxtest.New(t, kind)
				args.Root = args.Place.Root
			}
			args.kill(t, len(data))
			open := localFactory(args.Root)
			if args.Place != nil {
				open = args.Place.Sandbox(t).Bridge
			}
			interrupted(t, args.Root, s, f, data, open)
		})
	}
}

// kill starts the process and kills it when a quarter was sent.
func (a stageArgs) kill(t *testing.T, size int) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stageEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, sent := bufio.NewScanner(out), 0
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "sent %d", &sent); err != nil || sent > size/4 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if sent <= size/4 || sent == size {
		t.Fatalf("killed after %d bytes: %s", sent, lines.Text())
	}
}
