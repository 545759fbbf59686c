package containertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// Cases tests what users of systems of this kind have reported as broken, where the suite of package
// backendtest does not: that has the cases which every backend can have.
func (s Subject) Cases(t *testing.T) {
	for name, run := range map[string]func(*kit){
		"used-after-its-end": caseUsedAfter, "started-by-somebody": caseStartedBySomebody, "ended-unseen": caseEndedUnseen,
		"ends-under-a-command": caseUnderCommand, "ends-under-a-write": caseUnderWrite, "ends-under-a-read": caseUnderRead,
		"paused-under-all": casePausedUnder, "processes-run-out": caseProcesses, "complete-when-busy": caseComplete,
		"dies-at-once": caseDiesAtOnce, "image-wishes": caseImageWishes, "image-covers-workspace": caseImageCovers,
		"image-moved": caseImageMoved, "no-shell": caseNoShell, "odd-shell": caseOddShell,
		"secrets": caseSecrets, "foreign-labels": caseForeignLabels, "prune": casePrune, "odd-names": caseOddNames, "names-not-text": caseNamesNotText,
		"sources-change": caseSourcesChange, "parents": caseParents, "engine-sees-other-files": caseOtherFiles,
	} {
		t.Run(name, func(t *testing.T) { s.run(t, run) })
	}
}

// patience bounds every test, against hangs only.
const patience = 2 * time.Minute

// CasesRootless does so as the ordinary user whose engine it is. C043 C047
func (s Subject) CasesRootless(t *testing.T) {
	if os.Geteuid() != 0 {
		s.Cases(t)
		return
	}
	s.rerunAsOwner(t)
}

// run gives a test its kit.
func (s Subject) run(t *testing.T, test func(*kit)) {
	address := s.Address(t)
	engine, err := s.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	k := &kit{T: t, s: s, ctx: ctx, address: address, engine: engine, dir: t.TempDir()}
	t.Cleanup(func() {
		cancel()
		k.tidy()
		_ = engine.Close()
	})
	k.ws = k.workspace("ws")
	k.b = k.open("state")
	test(k)
}

// api calls the engine as other programs do: Podman's services speak Docker's protocol too.
func (k *kit) api(method, path string) []byte {
	k.Helper()
	body, status := k.call(k.ctx, method, path)
	if status >= 400 {
		k.Fatalf("%s %s: %d %s", method, path, status, body)
	}
	return body
}

func (k *kit) call(ctx context.Context, method, path string) (body []byte, status int) {
	k.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(k.address, "unix://"))
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.40"+path, nil)
	k.must(err)
	res, err := (&http.Client{Transport: transport}).Do(req)
	k.must(err)
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	k.must(err)
	return body, res.StatusCode
}

// inspect is all that the engine tells of a container.
func (k *kit) inspect(id string) string {
	k.Helper()
	return string(k.api(http.MethodGet, "/containers/"+id+"/json"))
}

// stopped does as "docker stop" does.
func (k *kit) stopped(id string) { k.api(http.MethodPost, "/containers/"+id+"/stop?t=5") }

// untag takes a name away from an image.
func (k *kit) untag(ctx context.Context, name string) {
	k.Helper()
	k.call(ctx, http.MethodDelete, "/images/"+url.PathEscape(name)+"?force=true")
}

// started is a command that runs.
type started struct {
	*sandbox.Running
	out *sandbox.OutputBuffer
}

// start starts a script and waits until it has written a line "start".
func (k *kit) start(sb sandbox.Sandbox, script string) started {
	k.Helper()
	out := sandbox.NewOutputBuffer(0)
	first := &firstLine{w: out, seen: make(chan struct{})}
	r, err := sandbox.Start(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "echo start; " + script}}, nil,
		sandbox.IO{Stdout: first}, sandbox.StartOptions{})
	k.must(err)
	select {
	case <-first.seen:
	case <-k.ctx.Done():
		k.Fatal("the command writes nothing")
	}
	return started{r, out}
}

// end waits for the end of a command and gives its output.
func (k *kit) end(s started) (string, sandbox.ExitStatus) {
	k.Helper()
	status, err := s.Wait(k.ctx)
	k.must(err)
	s.out.End()
	return string(s.out.Output().Bytes()), status
}

// firstLine tells when something was written.
type firstLine struct {
	w    io.Writer
	seen chan struct{}
	once bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if !f.once {
		f.once = true
		close(f.seen)
	}
	return f.w.Write(p)
}

// within demands that something is done in time.
func (k *kit) within(most time.Duration, what string, do func()) {
	k.Helper()
	begin := time.Now()
	do()
	if took := time.Since(begin); took > most {
		k.Errorf("%s took %s, at most %s is right", what, took.Round(time.Millisecond), most)
	}
}

// noTemporaries demands that no half-written file is in the workspace.
func (k *kit) noTemporaries() {
	k.Helper()
	names, err := filepath.Glob(filepath.Join(k.ws, ".berth-*"))
	k.must(err)
	if len(names) > 0 {
		k.Errorf("left in the workspace: %q", names)
	}
}

// read reads a file of this machine.
func (k *kit) read(path string) string {
	k.Helper()
	data, err := os.ReadFile(path)
	k.must(err)
	return string(data)
}

// field takes one value out of JSON.
func field(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w in %.200q", err, text)
	}
	return nil
}
