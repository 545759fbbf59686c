package libpod

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container"
)

func TestStart(t *testing.T) {
	c := serve(t, map[string]http.HandlerFunc{
		"POST /containers/fresh/start":   say(204, ""),
		"POST /containers/running/start": say(304, ""),
		"POST /containers/broken/start":  say(500, `{"cause":"no such file","message":"runc: no such file"}`),
		"POST /containers/none/start":    say(404, `{"message":"no such container"}`),
	})
	for id, want := range map[string]string{
		"fresh": "", "running": "", "broken": "start container broken: runc: no such file", "none": "start container none: no such container",
	} {
		got := ""
		if err := c.Start(t.Context(), id); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Start(%s) = %q, want %q", id, got, want)
		}
	}
}

func TestWait(t *testing.T) {
	exited := `{"Id":"x","State":{"Status":"exited","ExitCode":3}}`
	for _, tc := range []struct {
		name          string
		wait, inspect http.HandlerFunc
		code          int
		kind          error // errClosed: any other
	}{
		{"ended", say(200, "3\n"), say(200, exited), 3, nil},
		{"ended long ago", say(200, "-1"), say(200, exited), 3, nil},
		{"never ran", say(200, "-1"), say(200, `{"Id":"x","State":{"Status":"created"}}`), 0, nil},
		{"started again", say(200, "5"), say(200, `{"Id":"x","State":{"Status":"running"}}`), 5, nil},
		{"removed before", say(404, `{"message":"no"}`), say(404, ""), 0, container.ErrNotFound},
		{"removed meanwhile", say(200, "137"), say(404, ""), 0, container.ErrNotFound},
		{"removed, badly told", say(500, `{"message":"no exit code"}`), say(404, ""), 0, container.ErrNotFound},
		{"removed while it is looked at", say(500, `{"message":"no exit code"}`), say(500, `{"message":"container x does not exist in database: no such container"}`), 0, container.ErrNotFound},
		{"ill", say(500, `{"message":"database is locked"}`), say(200, exited), 0, errClosed},
		{"garbage", say(200, "soon"), say(200, exited), 0, errClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, map[string]http.HandlerFunc{"POST /containers/x/wait": tc.wait, "GET /containers/x/json": tc.inspect})
			code, err := c.Wait(t.Context(), "x")
			switch {
			case tc.kind == errClosed:
				if err == nil || errors.Is(err, container.ErrNotFound) || errors.Is(err, container.ErrUnreachable) {
					t.Errorf("err = %v", err)
				}
			case code != tc.code || !errors.Is(err, tc.kind):
				t.Errorf("Wait = %d, %v; want %d, %v", code, err, tc.code, tc.kind)
			}
		})
	}
}

// TestKill looks at what is asked of the engine, in which order.
func TestKill(t *testing.T) {
	for _, tc := range []struct {
		name, status, pidMode string
		answer                int
		want                  []string
		fails                 bool
	}{
		{"running", "running", "private", 204, []string{"kill?signal=KILL"}, false},
		{"stopping", "stopping", "private", 204, []string{"kill?signal=KILL"}, false},
		{"paused", "paused", "private", 204, []string{"unpause", "kill?signal=KILL"}, false},
		{"among others", "running", "host", 204, []string{"stop?timeout=0"}, false},
		{"paused among others", "paused", "host", 204, []string{"unpause", "stop?timeout=0"}, false},
		{"created", "created", "private", 204, nil, false},
		{"exited", "exited", "private", 204, nil, false},
		{"ended meanwhile", "running", "private", 409, []string{"kill?signal=KILL"}, false},
		{"refused", "running", "private", 500, []string{"kill?signal=KILL"}, true},
		{"removed meanwhile", "running", "private", 404, []string{"kill?signal=KILL"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			c := serve(t, map[string]http.HandlerFunc{
				"GET /containers/x/json": say(200, `{"Id":"x","State":{"Status":"`+tc.status+`"},"HostConfig":{"PidMode":"`+tc.pidMode+`"}}`),
				"POST /": func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, strings.TrimPrefix(r.URL.RequestURI(), "/containers/x/"))
					say(tc.answer, `{"message":"m"}`)(w, r)
				},
			})
			if err := c.Kill(t.Context(), "x"); (err != nil) != tc.fails {
				t.Errorf("Kill = %v", err)
			}
			if !slices.Equal(asked, tc.want) {
				t.Errorf("asked %q, want %q", asked, tc.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		kind   error // errClosed: any
	}{
		{200, `[{"Id":"x","Err":null,"RawInput":"x"}]`, nil},
		{204, ``, nil},
		{404, `{"message":"no such container"}`, nil},
		{200, `[{"Id":"x","Err":{}}]`, errClosed},
		{200, `[{"Id":"x","Err":"device or resource busy"}]`, errClosed},
		{409, `{"message":"being removed"}`, container.ErrConflict},
		{500, `{"message":"device or resource busy"}`, errClosed},
	} {
		var query string
		c := serve(t, map[string]http.HandlerFunc{"DELETE /containers/x": func(w http.ResponseWriter, r *http.Request) {
			query = r.URL.RawQuery
			if tc.status == 204 {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			say(tc.status, tc.body)(w, r)
		}})
		err := c.Remove(t.Context(), "x")
		if (err == nil) != (tc.kind == nil) || tc.kind == container.ErrConflict && !errors.Is(err, tc.kind) {
			t.Errorf("%d %s: %v", tc.status, tc.body, err)
		}
		if query != "force=true&timeout=0&v=true" {
			t.Errorf("query %s", query)
		}
	}
}

func TestInspectAndList(t *testing.T) {
	var query string
	c := serve(t, map[string]http.HandlerFunc{
		"GET /containers/name/json": say(200, `{"Id":"abc","Name":"name","Image":"img","Created":"2020-01-02T03:04:05.5+01:00",
			"State":{"Status":"exited","OOMKilled":true,"ExitCode":137,"Pid":0,"Error":"","StartedAt":"2020-01-02T03:04:06Z","FinishedAt":"2020-01-02T03:04:07Z"},
			"Config":{"Labels":{"a":"b"}}}`),
		"GET /containers/failed/json": say(200, `{"Id":"abc","State":{"Status":"created","Error":"runc: no such file","StartedAt":"0001-01-01T00:00:00Z"}}`),
		"GET /containers/busy/json":   say(200, `{"Id":"abc","State":{"Status":"running","Error":"container abc: container is running","Pid":7}}`),
		"GET /containers/json": func(w http.ResponseWriter, r *http.Request) {
			query = r.URL.Query().Get("filters") + r.URL.Query().Get("all")
			say(200, `[{"Id":"1","Names":["one"],"ImageID":"img","Labels":{"a":"b","c":""},"State":"running","Pid":7,"StartedAt":1577934246,"Created":"2020-01-02T03:04:05Z"},
				{"Id":"2","Names":null,"Labels":{"a":"other","c":"x"},"State":"exited","Pid":9,"StartedAt":-62135596800},
				{"Id":"3","Labels":null}]`)(w, r)
		},
	})
	got, err := c.Inspect(t.Context(), "name")
	want := container.Exit{Code: 137, OOM: true, Time: time.Date(2020, 1, 2, 3, 4, 7, 0, time.UTC)}
	if err != nil || got.ID != "abc" || got.Status != container.StatusExited || got.Exit != want || got.Labels["a"] != "b" || got.Created.IsZero() || got.ImageID != "img" {
		t.Errorf("Inspect = %+v, %v", got, err)
	}
	if got, err = c.Inspect(t.Context(), "failed"); err != nil || got.Exit != (container.Exit{Error: "runc: no such file"}) || !got.Started.IsZero() {
		t.Errorf("Inspect of one that could not be started = %+v, %v", got, err)
	}
	if got, err = c.Inspect(t.Context(), "busy"); err != nil || got.Exit != (container.Exit{}) || got.PID != 7 {
		t.Errorf("Inspect of one that runs = %+v, %v", got, err)
	}
	list, err := c.List(t.Context(), map[string]string{"a": "b"})
	if err != nil || len(list) != 1 || list[0].ID != "1" || list[0].Name != "one" || list[0].PID != 7 || list[0].Started.Year() != 2020 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if query != `{"label":["a=b"]}true` {
		t.Errorf("query %s", query)
	}
	if list, err = c.List(t.Context(), nil); err != nil || len(list) != 3 || list[1].PID != 0 || !list[1].Started.IsZero() || list[2].Status != container.StatusDead {
		t.Errorf("List of all = %+v, %v", list, err)
	}
	if list, err = c.List(t.Context(), map[string]string{"c": ""}); err != nil || len(list) != 1 {
		t.Errorf("List by an empty value = %+v, %v", list, err)
	}
}
