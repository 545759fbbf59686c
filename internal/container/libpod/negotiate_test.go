package libpod

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/internal/container"
)

func TestChooseVersion(t *testing.T) {
	for told, want := range map[string]string{
		"4.0.0": "4.0.0", "4.3.1": "4.3.1", "5.0.0-dev": "5.0.0", "5.4.2": "5.4.2", "5.4.3": newest, "5.10.0": newest,
		"6.1.0": newest, "4.9.4-rhel": "4.9.4", "4.9.3+ds1": "4.9.3",
	} {
		if got, err := chooseVersion(told); err != nil || got != want {
			t.Errorf("chooseVersion(%q) = %q, %v; want %q", told, got, err, want)
		}
	}
	for _, told := range []string{"", "3.4.4", "1.41", "x.y.z", "5", "5..1", "-5.1.1", "70000.1.1", "5.1.1.1", "4.3.1/../.."} {
		if got, err := chooseVersion(told); err == nil {
			t.Errorf("chooseVersion(%q) = %q, want an error", told, got)
		}
	}
	if _, err := chooseVersion("3.4.4"); err == nil || !strings.Contains(err.Error(), "install 4.0.0 or later") {
		t.Errorf("too old: %v", err)
	}
}

func TestNegotiation(t *testing.T) {
	var pings atomic.Int32
	var path atomic.Value
	c := serveAll(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/libpod/_ping" {
			pings.Add(1)
			w.Header().Set("Libpod-API-Version", "4.3.1")
			return
		}
		path.Store(r.URL.Path)
		_, _ = w.Write([]byte("[]"))
	}))
	for range 3 {
		if _, err := c.List(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := path.Load(); got != "/v4.3.1/libpod/containers/json" || pings.Load() != 1 {
		t.Errorf("path %v after %d questions for the version", got, pings.Load())
	}
}

// TestOtherServices covers addresses where something else answers, or an engine that is ill.
func TestOtherServices(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"docker":  say(404, `{"message":"page not found"}`),
		"no name": say(200, "OK"),
		"ill":     say(500, `{"cause":"database is locked","message":"database is locked"}`),
		"old": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(versionHeader, "3.4.4")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveAll(t, handler)
			_, err := c.Image(t.Context(), "x")
			for _, kind := range []error{container.ErrNotFound, container.ErrConflict, container.ErrUnreachable} {
				if err == nil || errors.Is(err, kind) {
					t.Errorf("Image = %v, which must match none of the kinds", err)
				}
			}
			if err != nil && !strings.Contains(err.Error(), c.address) {
				t.Errorf("the error does not name the address: %v", err)
			}
		})
	}
}
