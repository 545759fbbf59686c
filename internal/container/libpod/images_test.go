package libpod

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
)

func TestPull(t *testing.T) {
	const done = `{"images":["abc"],"id":"abc"}` + "\n"
	for _, tc := range []struct {
		name, body string
		lines      []string
		says       string // of an error; "" means none
		kind       error
	}{
		{"well", `{"stream":"Trying to pull\nCopying blob\n"}` + "\n\n" + `{"stream":"\u001b[1mWriting\n"}` + "\n" + done,
			[]string{"Trying to pull", "Copying blob", "[1mWriting"}, "", nil},
		{"nothing to do", done, nil, "", nil},
		{"offline", `{"stream":"Trying to pull\n"}` + "\n" + `{"error":"initializing source docker://x: pinging container registry x: dial tcp: lookup x: no such host"}` + "\n",
			[]string{"Trying to pull"}, "pull image x: initializing source docker://x: pinging container registry x: dial tcp: lookup x: no such host", nil},
		{"error before the end", `{"error":"first"}` + "\n" + done, nil, "first", nil},
		{"cut off", `{"stream":"Trying to pull\n"}` + "\n", []string{"Trying to pull"}, "unexpected EOF", container.ErrUnreachable},
		{"garbage", "<html>\n", nil, "makes no sense", nil},
		{"long line", `{"stream":"` + strings.Repeat("x", maxProgress) + `"}` + "\n" + done, nil, "makes no sense", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked string
			c := serve(t, map[string]http.HandlerFunc{"POST /images/pull": func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Query().Get("reference")
				say(200, tc.body)(w, r)
			}})
			var lines []string
			err := c.Pull(t.Context(), "x", func(line string) { lines = append(lines, line) })
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want %q", err, tc.says)
			}
			if errors.Is(err, container.ErrUnreachable) != (tc.kind != nil) {
				t.Errorf("err = %v, want it to match %v", err, tc.kind)
			}
			if !slices.Equal(lines, tc.lines) || asked != "x" {
				t.Errorf("asked for %q, told %q, want %q", asked, lines, tc.lines)
			}
		})
	}
	c := serve(t, map[string]http.HandlerFunc{"POST /images/pull": say(500, `{"message":"invalid reference format","cause":"invalid reference format"}`)})
	var refusal *RefusalError
	if err := c.Pull(t.Context(), "X", nil); !errors.As(err, &refusal) || refusal.Text != "invalid reference format" {
		t.Errorf("refused at once: %v", err)
	}
}

func TestArchives(t *testing.T) {
	var path, kind, sent string
	c := serve(t, map[string]http.HandlerFunc{"POST /": func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, kind, sent = r.URL.RequestURI(), r.Header.Get("Content-Type"), string(raw)
		_, _ = w.Write([]byte(`{"Id":"sha256:abc","Names":["localhost/a:1","b"]}`))
	}})
	body := strings.Repeat("x", 1<<20)
	if id, err := c.Import(t.Context(), "localhost/a:1", strings.NewReader(body)); err != nil || id != "abc" {
		t.Errorf("Import = %q, %v", id, err)
	}
	if path != "/images/import?reference=localhost%2Fa%3A1" || kind != "application/x-tar" || sent != body {
		t.Errorf("%s with %d bytes of %s", path, len(sent), kind)
	}
	if names, err := c.Load(t.Context(), strings.NewReader("y")); err != nil || !slices.Equal(names, []string{"localhost/a:1", "b"}) {
		t.Errorf("Load = %q, %v", names, err)
	}
}

func TestImage(t *testing.T) {
	c := serve(t, map[string]http.HandlerFunc{
		"GET /images/{name}/json": func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("name") != "registry.example/a/b:1" {
				say(404, `{"message":"no such image"}`)(w, r)
				return
			}
			say(200, `{"Id":"abc","RepoTags":["registry.example/a/b:1"],"Created":"2020-01-02T03:04:05Z","Architecture":"amd64",
				"Os":"linux","Size":7,"Config":{"Env":["A=b"]}}`)(w, r)
		},
	})
	got, err := c.Image(t.Context(), "registry.example/a/b:1")
	if err != nil || got.ID != "abc" || !slices.Equal(got.Env, []string{"A=b"}) || got.Arch != "amd64" || got.OS != "linux" || got.Size != 7 || got.Created.Year() != 2020 {
		t.Errorf("Image = %+v, %v", got, err)
	}
	for _, name := range []string{"", ".", "..", "other"} {
		if _, err := c.Image(t.Context(), name); !errors.Is(err, container.ErrNotFound) {
			t.Errorf("Image(%q) = %v", name, err)
		}
	}
}
