package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// forever is a script that runs until it is killed.
const forever = "echo up; exec sleep 100000"

func describes(k *kit) {
	d := k.about
	for what, value := range map[string]string{
		"Product": d.Product, "Version": d.Version, "API": d.API, "OS": d.OS, "Arch": d.Arch, "Kernel": d.Kernel,
		"CgroupManager": d.CgroupManager, "Storage": d.Storage, "Root": d.Root,
	} {
		if value == "" {
			k.Errorf("%s is empty", what)
		}
	}
	if d.Arch == "x86_64" || d.Arch == "aarch64" {
		k.Errorf("Arch = %q, which is not Go's word", d.Arch)
	}
	if d.CgroupVersion != "1" && d.CgroupVersion != "2" {
		k.Errorf("CgroupVersion = %q", d.CgroupVersion)
	}
}

func images(k *kit) {
	for _, name := range []string{k.plain, k.rich} {
		image, err := k.engine.Image(k.ctx, name)
		if err != nil {
			k.Fatal(err)
		}
		if !slices.Contains(image.Names, name) || image.OS != "linux" || image.Arch == "" || image.Size <= 0 || image.Created.IsZero() {
			k.Errorf("Image(%s) = %+v", name, image)
		}
		again, err := k.engine.Image(k.ctx, image.ID)
		if err != nil || again.ID != image.ID {
			k.Errorf("Image(%s) = %+v, %v", image.ID, again, err)
		}
	}
	if image, _ := k.engine.Image(k.ctx, k.rich); !slices.Contains(image.Env, "FROM_IMAGE=image") {
		k.Errorf("Env = %q", image.Env)
	}
}

func missingImage(k *kit) {
	for _, name := range []string{
		"localhost/enginetest-none:1", "enginetest-none", strings.Repeat("0", 64), "x y?z#%41/json", "", "..",
	} {
		_, err := k.engine.Image(k.ctx, name)
		if err == nil {
			k.Errorf("Image(%q) found something", name)
		}
		if name != "" && !strings.ContainsAny(name, " .") || strings.Contains(name, "/enginetest") {
			k.wantErr(fmt.Sprintf("Image(%q)", name), err, container.ErrNotFound)
		}
	}
	s := k.spec("true")
	s.Image = "localhost/enginetest-none:1"
	_, err := k.engine.Create(k.ctx, s)
	k.wantErr("Create", err, container.ErrNotFound)
	_, err = k.engine.Inspect(k.ctx, s.Name)
	k.wantErr("Inspect after it", err, container.ErrNotFound)
}

func failedPull(k *kit) {
	// Nobody listens on the port.
	err := k.engine.Pull(k.ctx, "127.0.0.1:1/enginetest/none:1", func(string) {})
	if err == nil || errors.Is(err, container.ErrUnreachable) {
		k.Fatalf("Pull = %v, want the engine's refusal", err)
	}
	if text := err.Error(); len(text) < 20 || len(text) > 4096 || strings.ContainsAny(text, "\x00\x1b{") {
		k.Errorf("the error cannot be read by people: %q", text)
	}
}

func life(k *kit) {
	before := time.Now().Add(-time.Minute) // the engine may have another clock
	s := k.spec("echo run; exit 7")
	id := k.create(s)
	c := k.inspect(id)
	if c.ID != id || c.Name != s.Name || c.Status != container.StatusCreated || c.PID != 0 || c.Created.Before(before) || c.Exit != (container.Exit{}) {
		k.Errorf("created: %+v", c)
	}
	if image, err := k.engine.Image(k.ctx, k.plain); err != nil || c.ImageID != image.ID {
		k.Errorf("ImageID = %q, image %+v, %v", c.ImageID, image, err)
	}
	if got := c.Labels[label]; got != k.word {
		k.Errorf("label = %q", got)
	}
	for round := 1; round <= 2; round++ {
		if err := k.engine.Start(k.ctx, id); err != nil {
			k.Fatalf("Start: %v", err)
		}
		if code := k.wait(id); code != 7 {
			k.Errorf("round %d: exit code %d, want 7", round, code)
		}
		c := k.inspect(s.Name) // by name
		if c.ID != id || c.Status != container.StatusExited || c.Exit.Code != 7 || c.Exit.OOM || c.Exit.Time.Before(before) || c.Started.Before(before) || c.PID != 0 {
			k.Errorf("round %d: %+v", round, c)
		}
		if got := strings.Count(k.output(id), "run\n"); got != round {
			k.Errorf("the logs have %d runs of %d", got, round)
		}
	}
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Errorf("Remove: %v", err)
	}
	_, err := k.engine.Inspect(k.ctx, id)
	k.wantErr("Inspect of a removed one", err, container.ErrNotFound)
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Errorf("Remove again: %v", err)
	}
}

func waits(k *kit) {
	id := k.create(k.spec(forever))
	if code := k.wait(id); code != 0 {
		k.Errorf("one that never ran: exit code %d", code)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Errorf("Start of one that runs: %v", err)
	}
	if c := k.inspect(id); c.Status != container.StatusRunning || c.PID == 0 || c.Exit != (container.Exit{}) {
		k.Errorf("running: %+v", c)
	}
	done := make(chan int, 1)
	go func() {
		code, err := k.engine.Wait(k.ctx, id)
		if err != nil {
			code = -1
		}
		done <- code
	}()
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if code := <-done; code != 137 {
		k.Errorf("killed while waited for: exit code %d, want 137", code)
	}
	if code := k.wait(id); code != 137 {
		k.Errorf("waited for afterwards: exit code %d, want 137", code)
	}
}

func waitGivenUp(k *kit) {
	id := k.start(k.spec(forever))
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := k.engine.Wait(ctx, id)
		done <- err
	}()
	select {
	case err := <-done:
		k.Errorf("Wait of a running one = %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	cancel()
	k.wantErr("Wait given up", <-done, context.Canceled)
	if c := k.inspect(id); c.Status != container.StatusRunning {
		k.Errorf("afterwards: %+v", c)
	}
}

func waitRemoved(k *kit) {
	id := k.start(k.spec(forever))
	done := make(chan error, 1)
	go func() {
		_, err := k.engine.Wait(k.ctx, id)
		done <- err
	}()
	select {
	case err := <-done:
		k.Fatalf("Wait of a running one = %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	k.remove(id)
	// Who sees the end before the removal may tell the exit code.
	if err := <-done; err != nil {
		k.wantErr("Wait", err, container.ErrNotFound)
	}
	_, err := k.engine.Wait(k.ctx, id)
	k.wantErr("Wait afterwards", err, container.ErrNotFound)
}

func logs(k *kit) {
	id := k.start(k.spec("for i in 1 2 3 4; do echo line $i; done; printf 'a\\001b\\n'; printf end"))
	k.wait(id)
	all := "line 1\nline 2\nline 3\nline 4\na\x01b\nend"
	for lines, want := range map[int]string{0: "", 1: "end", 2: "a\x01b\nend", 3: "line 4\na\x01b\nend", 6: all, 1000: all} {
		got, err := k.engine.Logs(k.ctx, id, lines)
		if text := strings.TrimSuffix(string(got), "\n"); err != nil || text != want {
			k.Errorf("Logs(%d) = %q, %v; want %q", lines, text, err, want)
		}
	}
	// A long line may count as several, but it is one.
	long := strings.Repeat("x", 40_000)
	id = k.start(k.spec("echo " + long + "; printf ' end'"))
	k.wait(id)
	if got := strings.TrimSuffix(k.output(id), "\n"); got != long+"\n end" {
		k.Errorf("a long line: %.80q (%d bytes)", got, len(got))
	}
	id = k.start(k.spec("echo out; echo err >&2"))
	k.wait(id)
	got := strings.Fields(k.output(id))
	slices.Sort(got)
	if !slices.Equal(got, []string{"err", "out"}) {
		k.Errorf("both streams: %q", got)
	}
	id = k.create(k.spec("true"))
	if got, err := k.engine.Logs(k.ctx, id, 10); err != nil || len(bytes.TrimSpace(got)) > 0 {
		k.Errorf("logs of one that never ran: %q, %v", got, err)
	}
}

// noisy covers output without end: the engine may keep only the last of it, and a reader gets that.
func noisy(k *kit) {
	s := k.spec(`awk 'BEGIN { for (i = 0; i < 200000; i++) print "a line of output that is forty bytes long", i; print "last" }'`)
	id := k.start(s)
	k.wait(id)
	for _, lines := range []int{1, 100, 1_000_000} {
		got, err := k.engine.Logs(k.ctx, id, lines)
		if err != nil || !bytes.HasSuffix(got, []byte("last\n")) || bytes.Count(got, []byte("\n")) > lines {
			k.Errorf("Logs(%d) = %d bytes, %v", lines, len(got), err)
		}
	}
}

func kill(k *kit) {
	id := k.create(k.spec("trap '' TERM INT HUP; sleep 100000 & echo up; wait; sleep 100000"))
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Errorf("Kill of one that never ran: %v", err)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	k.awaitOutput(id, "up")
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if code := k.wait(id); code != 137 {
		k.Errorf("exit code %d, want 137", code)
	}
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Errorf("Kill of one that has ended: %v", err)
	}
}

func killPaused(k *kit) {
	if k.suite.pause == nil {
		missing(k, "no way to pause a container was given")
	}
	for _, end := range []struct {
		name string
		do   func(ctx context.Context, id string) error
	}{{"Kill", k.engine.Kill}, {"Remove", k.engine.Remove}} {
		id := k.start(k.spec(forever))
		k.awaitOutput(id, "up")
		if err := k.pause(k.ctx, id); err != nil {
			k.Skipf("this engine cannot pause: %v", err)
		}
		if c := k.inspect(id); c.Status != container.StatusPaused {
			k.Errorf("paused: %+v", c)
		}
		if err := end.do(k.ctx, id); err != nil {
			k.Fatalf("%s: %v", end.name, err)
		}
		if end.name == "Remove" {
			_, err := k.engine.Inspect(k.ctx, id)
			k.wantErr("Inspect", err, container.ErrNotFound)
		} else if code := k.wait(id); code != 137 {
			k.Errorf("exit code %d, want 137", code)
		}
	}
}

// killAmongOthers covers containers that share the machine's processes: those of their own do not
// end by themselves when the first one does.
func killAmongOthers(k *kit) {
	if k.about.Rootless {
		k.Skip("the engine of an ordinary user cannot show the machine's processes")
	}
	mark := fmt.Sprint(100_000_000 + time.Now().UnixNano()%1_000_000)
	s := k.spec("sleep " + mark + " & echo up; exec sleep " + mark)
	s.PidMode = "host"
	id := k.start(s)
	k.awaitOutput(id, "up")
	look := func() string {
		s := k.spec("cat /proc/[0-9]*/cmdline 2>/dev/null | grep -c -a 'sleep[^.]" + mark + "'; true")
		s.PidMode = "host"
		return k.mustRun(s)
	}
	if got := look(); got == "0" {
		k.Fatal("the processes are not seen")
	}
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	k.wait(id)
	if got := look(); got != "0" {
		k.Errorf("processes of a killed container are left")
	}
}

func remove(k *kit) {
	id := k.start(k.spec(forever))
	k.awaitOutput(id, "up")
	begun := time.Now()
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if took := time.Since(begun); took > 8*time.Second {
		k.Errorf("it took %v: the container was asked before it was killed", took)
	}
	_, err := k.engine.Inspect(k.ctx, id)
	k.wantErr("Inspect", err, container.ErrNotFound)
}

func conflict(k *kit) {
	s := k.spec("true")
	k.create(s)
	_, err := k.engine.Create(k.ctx, s)
	k.wantErr("Create", err, container.ErrConflict)
	if err != nil && !strings.Contains(err.Error(), s.Name) {
		k.Errorf("the error does not name the container: %v", err)
	}
}

func notFound(k *kit) {
	for _, id := range []string{strings.Repeat("0", 64), "enginetest-" + k.word + "-none", "", "..", "a/b?c", "%2e%2e"} {
		_, inspect := k.engine.Inspect(k.ctx, id)
		_, wait := k.engine.Wait(k.ctx, id)
		_, logs := k.engine.Logs(k.ctx, id, 10)
		for what, err := range map[string]error{
			"Inspect": inspect, "Wait": wait, "Logs": logs, "Start": k.engine.Start(k.ctx, id), "Kill": k.engine.Kill(k.ctx, id),
		} {
			if id == "" || strings.ContainsAny(id, "./?%") { // no names at all: any refusal will do
				if err == nil {
					k.Errorf("%s(%q) is no error", what, id)
				}
				continue
			}
			k.wantErr(fmt.Sprintf("%s(%q)", what, id), err, container.ErrNotFound)
		}
		if err := k.engine.Remove(k.ctx, id); err != nil && id != "" && !strings.ContainsAny(id, "./?%") {
			k.Errorf("Remove(%q): %v", id, err)
		}
	}
}

func labels(k *kit) {
	one, two := k.spec(forever), k.spec("true")
	maps.Copy(one.Labels, map[string]string{"berth.a": "x=y,z \"ü\"", "berth.empty": ""})
	maps.Copy(two.Labels, map[string]string{"berth.a": "other", "berth.empty": "not"})
	first, second := k.start(one), k.create(two)
	both := []string{first, second}
	slices.Sort(both)
	for _, tc := range []struct {
		labels map[string]string
		want   []string
	}{
		{map[string]string{label: k.word, "berth.a": "x=y,z \"ü\""}, []string{first}},
		{map[string]string{label: k.word, "berth.a": "other"}, []string{second}},
		{map[string]string{label: k.word, "berth.empty": ""}, []string{first}},
		{map[string]string{label: k.word, "berth.a": "x"}, nil},
		{map[string]string{label: k.word, "berth.b": ""}, nil},
		{map[string]string{label: k.word}, both},
	} {
		found, err := k.engine.List(k.ctx, tc.labels)
		if err != nil {
			k.Fatal(err)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.ID)
			want := k.inspect(c.ID)
			want.Exit = container.Exit{}
			if c.Name != want.Name || c.ImageID != want.ImageID || c.Status != want.Status || c.PID != want.PID && c.PID != 0 || !maps.Equal(c.Labels, want.Labels) {
				k.Errorf("List has %+v, Inspect %+v", c, want)
			}
			if c.Created.Unix() != want.Created.Unix() && !c.Created.IsZero() {
				k.Errorf("List has the time %v, Inspect %v", c.Created, want.Created)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			k.Errorf("List(%v) = %q, want %q", tc.labels, got, tc.want)
		}
	}
}

func crowd(k *kit) {
	var group sync.WaitGroup
	for i := range 4 {
		s := k.spec(fmt.Sprintf("exit %d", 10+i))
		group.Go(func() {
			made, err := k.engine.Create(k.ctx, s)
			if err != nil {
				k.Errorf("Create: %v", err)
				return
			}
			if err := k.engine.Start(k.ctx, made.ID); err != nil {
				k.Errorf("Start: %v", err)
			} else if code, err := k.engine.Wait(k.ctx, made.ID); err != nil || code != 10+i {
				k.Errorf("Wait = %d, %v; want %d", code, err, 10+i)
			}
			if err := k.engine.Remove(k.ctx, made.ID); err != nil {
				k.Errorf("Remove: %v", err)
			}
		})
	}
	group.Wait()
}

// calls makes every call that needs no container.
func (k *kit) calls(ctx context.Context, engine container.Engine) map[string]error {
	errs := map[string]error{}
	_, errs["Describe"] = engine.Describe(ctx)
	_, errs["Image"] = engine.Image(ctx, k.plain)
	errs["Pull"] = engine.Pull(ctx, "127.0.0.1:1/none:1", nil)
	_, errs["Import"] = engine.Import(ctx, "localhost/enginetest-none:1", strings.NewReader("x"))
	_, errs["Load"] = engine.Load(ctx, strings.NewReader("x"))
	_, errs["Create"] = engine.Create(ctx, k.spec("true"))
	errs["Start"] = engine.Start(ctx, "none")
	_, errs["Wait"] = engine.Wait(ctx, "none")
	errs["Kill"] = engine.Kill(ctx, "none")
	errs["Remove"] = engine.Remove(ctx, "none")
	_, errs["Inspect"] = engine.Inspect(ctx, "none")
	_, errs["List"] = engine.List(ctx, nil)
	_, errs["Logs"] = engine.Logs(ctx, "none", 1)
	return errs
}

func cancelled(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	for what, err := range k.calls(ctx, k.engine) {
		k.wantErr(what, err, context.Canceled)
	}
}

func unreachable(k *kit) {
	if k.suite.unreachable == nil {
		missing(k, "no client of an address without an engine was given")
	}
	for what, err := range k.calls(k.ctx, k.suite.unreachable) {
		k.wantErr(what, err, container.ErrUnreachable)
	}
}
