package libpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/workberth/workberth/internal/container"
)

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		kind   error
		says   string
	}{
		{"not found", 404, `{"cause":"no such container","message":"no container with name or ID \"x\" found: no such container","response":404}`, container.ErrNotFound, `no container with name or ID "x" found: no such container`},
		{"removed meanwhile", 500, `{"cause":"no such container","message":"container x does not exist in database: no such container","response":500}`, container.ErrNotFound, "does not exist in database"},
		{"conflict", 409, `{"cause":"container state improper","message":"can only kill running containers","response":409}`, container.ErrConflict, "can only kill running containers: container state improper"},
		{"refused", 500, `{"cause":"boom","message":"","response":500}`, nil, "boom"},
		{"nothing", 500, ``, nil, "status 500 and no reason"},
		{"no JSON", 502, "<html>bad\x00 \x1b[31mgateway\xff</html>\n", nil, "<html>bad   [31mgateway\uFFFD</html>"},
		{"other JSON", 500, `["a"]`, nil, `["a"]`},
		{"moved", 301, `elsewhere`, nil, "elsewhere"},
		{"long", 500, `{"message":"` + strings.Repeat("é", 5000) + `"}`, nil, "éé…"},
		{"endless", 500, strings.Repeat("x", 1<<20), nil, "xx…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, map[string]http.HandlerFunc{"/containers/x/json": say(tc.status, tc.body)})
			_, err := c.Inspect(t.Context(), "x")
			var refusal *RefusalError
			if !errors.As(err, &refusal) || refusal.Status != tc.status || len(refusal.Text) > maxText {
				t.Fatalf("err = %v", err)
			}
			if text := err.Error(); !strings.Contains(text, tc.says) || !strings.HasPrefix(text, "inspect container x: ") {
				t.Errorf("err = %q, want it to say %q", text, tc.says)
			}
			for _, kind := range []error{container.ErrNotFound, container.ErrConflict, container.ErrUnreachable} {
				if errors.Is(err, kind) != (kind == tc.kind) {
					t.Errorf("errors.Is(%v, %v) = %v", err, kind, kind != tc.kind)
				}
			}
		})
	}
}

// TestHostileAnswers makes every call get answers that make no sense. None may panic or succeed,
// but where nothing more than the status is looked at.
func TestHostileAnswers(t *testing.T) {
	for _, body := range []string{
		"", "null", "[]", "{}", "0x", `"x"`, "{\"Id\": 7}", `[{"Id":[]}]`, "{", "\x00\xff\xfe", "<html>", `{"Id":["a"]}`, `{"Id":""}`, `[null]`, strings.Repeat("[", 100_000), strings.Repeat("\x01", 9),
		"\x01\x00\x00\x00\xff\xff\xff\xff", "\x01\x00\x00\x00\x00\x00\x00\x05ab", `{"error":""}`,
	} {
		t.Run(fmt.Sprintf("%.20q", body), func(t *testing.T) {
			c := serve(t, map[string]http.HandlerFunc{"/": say(200, body)})
			ctx := t.Context()
			_, image := c.Image(ctx, "x")
			_, imported := c.Import(ctx, "x", strings.NewReader(""))
			_, loaded := c.Load(ctx, strings.NewReader(""))
			_, created := c.Create(ctx, container.Spec{Image: "x", Argv: []string{"x"}})
			_, inspected := c.Inspect(ctx, "x")
			_, waited := c.Wait(ctx, "x")
			for what, err := range map[string]error{
				"Image": image, "Import": imported, "Load": loaded, "Create": created, "Inspect": inspected, "Wait": waited,
				"Pull": c.Pull(ctx, "x", nil), "Kill": c.Kill(ctx, "x"),
			} {
				if err == nil {
					t.Errorf("%s succeeds", what)
				} else if errors.Is(err, container.ErrNotFound) || errors.Is(err, container.ErrConflict) {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, _ = c.Describe(ctx)
			_, _ = c.List(ctx, nil)
			_, _ = c.Logs(ctx, "x", 10, time.Time{})
			_, _ = c.Start(ctx, "x"), c.Remove(ctx, "x")
		})
	}
}

// TestOddDescriptions covers answers of the right shape with values that are not.
func TestOddDescriptions(t *testing.T) {
	for _, body := range []string{
		`{"Id":"a","State":[]}`, `{"Id":"a","Created":"yesterday"}`, `{"Id":"a","State":{"ExitCode":1e99}}`, `{"Id":"a","Config":{"Labels":[1]}}`,
	} {
		c := serve(t, map[string]http.HandlerFunc{"/": say(200, body)})
		if got, err := c.Inspect(t.Context(), "a"); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	c := serve(t, map[string]http.HandlerFunc{"/": say(200, `{"Id":"a","State":null,"Config":null,"Labels":null}`)})
	if got, err := c.Inspect(t.Context(), "a"); err != nil || got.Status != container.StatusDead || !got.Started.IsZero() {
		t.Errorf("nothing told: %+v, %v", got, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"Id":"`))
		for chunk := []byte(strings.Repeat("x", 1<<20)); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	c := serve(t, map[string]http.HandlerFunc{"/": endless})
	_, image := c.Image(t.Context(), "x")
	_, logs := c.Logs(t.Context(), "x", 1, time.Time{})
	for what, err := range map[string]error{"Image": image, "Logs": logs, "Pull": c.Pull(t.Context(), "x", nil)} {
		if err == nil || errors.Is(err, container.ErrUnreachable) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBrokenAnswers covers engines that end in the middle of an answer.
func TestBrokenAnswers(t *testing.T) {
	hangUp := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte(text))
			conn.Close()
		}
	}
	for name, text := range map[string]string{
		"nothing":     "",
		"half a head": "HTTP/1.1 200 O",
		"no HTTP":     "SSH-2.0-x\r\n\r\n",
		"half a body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\x01\x00\x00\x00\x00\x00\x00\x32abc",
		"half a part": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n\x01\x00\x00\x00\x00\x00\x00\x32abc",
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, map[string]http.HandlerFunc{"/": hangUp(text)})
			_, inspected := c.Inspect(t.Context(), "x")
			_, waited := c.Wait(t.Context(), "x")
			_, logs := c.Logs(t.Context(), "x", 1, time.Time{})
			for what, err := range map[string]error{
				"Inspect": inspected, "Wait": waited, "Logs": logs, "Pull": c.Pull(t.Context(), "x", nil),
				"Start": c.Start(t.Context(), "x"), "Remove": c.Remove(t.Context(), "x"),
			} {
				if !errors.Is(err, container.ErrUnreachable) || !strings.Contains(err.Error(), c.address) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	gone := listenAt(t)
	listener, err := net.Listen("unix", gone)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	for _, address := range []string{"unix://" + gone, "unix://" + gone + "-none", "tcp://127.0.0.1:1"} {
		c := open(t, Options{Address: address})
		_, err := c.Describe(t.Context())
		var unreachable *UnreachableError
		if !errors.Is(err, container.ErrUnreachable) || !errors.As(err, &unreachable) || unreachable.Address != address {
			t.Errorf("%s: %v", address, err)
		}
		if strings.Contains(err.Error(), "http://") || !strings.Contains(err.Error(), address) {
			t.Errorf("the error is not for people: %v", err)
		}
	}
}

// TestKeptConnections covers an engine that ends, with the connections that were kept, just when
// the next call is on its way.
func TestKeptConnections(t *testing.T) {
	var tries atomic.Int32
	hangUpOnce := func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) > 1 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}
	c := serve(t, map[string]http.HandlerFunc{
		"GET /containers/json":     say(200, "[]"),
		"POST /containers/x/start": hangUpOnce,
		"POST /containers/create":  hangUpOnce,
	})
	if _, err := c.List(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), "x"); err != nil || tries.Load() != 2 {
		t.Errorf("Start = %v after %d tries", err, tries.Load())
	}
	tries.Store(0)
	if _, err := c.List(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	// Whether there is a container now, nobody knows.
	_, err := c.Create(t.Context(), container.Spec{Image: "x", Argv: []string{"x"}})
	if !errors.Is(err, container.ErrUnreachable) || tries.Load() != 1 {
		t.Errorf("Create = %v after %d tries", err, tries.Load())
	}
}

// TestGivenUp covers an engine that stops in the middle of an answer and says nothing more.
func TestGivenUp(t *testing.T) {
	for name, begin := range map[string]string{"before the head": "", "in the body": "\x01\x00\x00\x00\x00\x00\x00\x05ab"} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{}, 10)
			c := serve(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
				if begin != "" {
					_, _ = w.Write([]byte(begin))
					_ = http.NewResponseController(w).Flush()
				}
				reached <- struct{}{}
				<-r.Context().Done()
			}})
			for what, do := range map[string]func(ctx context.Context) error{
				"Inspect": func(ctx context.Context) error { _, err := c.Inspect(ctx, "x"); return err },
				"Wait":    func(ctx context.Context) error { _, err := c.Wait(ctx, "x"); return err },
				"Logs":    func(ctx context.Context) error { _, err := c.Logs(ctx, "x", 1, time.Time{}); return err },
				"Pull":    func(ctx context.Context) error { return c.Pull(ctx, "x", nil) },
			} {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- do(ctx) }()
				<-reached
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, container.ErrUnreachable) {
					t.Errorf("%s: %v", what, err)
				}
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
				if err := do(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", what, err)
				}
				cancel()
				<-reached
			}
		})
	}
}

func TestClose(t *testing.T) {
	reached := make(chan struct{})
	c := serve(t, map[string]http.HandlerFunc{"POST /containers/x/wait": func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	}})
	done := make(chan error, 1)
	go func() {
		_, err := c.Wait(t.Context(), "x")
		done <- err
	}()
	<-reached
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_, later := c.Inspect(t.Context(), "x")
	for what, err := range map[string]error{"under way": <-done, "later": later, "again": c.Close()} {
		if what == "again" && err == nil {
			continue
		}
		if !errors.Is(err, container.ErrUnreachable) || !errors.Is(err, errClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSource covers an archive that cannot be read: that is not the engine's fault.
func TestSource(t *testing.T) {
	c := serve(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(`{"Id":"x"}`))
	}})
	broken := errors.New("the disk is broken")
	_, err := c.Import(t.Context(), "x", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || errors.Is(err, container.ErrUnreachable) {
		t.Errorf("Import = %v", err)
	}
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"unix:///run/podman/podman.sock": "unix /run/podman/podman.sock",
		"tcp://127.0.0.1:8080":           "tcp 127.0.0.1:8080",
		"tcp://[::1]:8080/":              "tcp [::1]:8080",
	} {
		network, target, err := parseAddress(address)
		if got := network + " " + target; err != nil || got != want {
			t.Errorf("parseAddress(%q) = %q, %v; want %q", address, got, err, want)
		}
	}
	for _, address := range []string{"", "/run/podman.sock", "unix://podman.sock", "unix://", "unix:///a\x00b", "tcp://host", "ssh://host/run/x", "http://x"} {
		c, err := New(Options{Address: address})
		if c != nil || err == nil || !strings.Contains(err.Error(), "unix:///path") && !strings.Contains(err.Error(), "port") {
			t.Errorf("New(%q) = %v, %v", address, c, err)
		}
	}
}
