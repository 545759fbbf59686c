package libpod

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// serve answers on a Unix socket as a Podman service of version 5.4.2 would, with routes beside
// the one that tells the version. A route's path begins after the version.
func serve(t *testing.T, routes map[string]http.HandlerFunc) *Client {
	t.Helper()
	mux := http.NewServeMux()
	for route, handler := range routes {
		mux.HandleFunc(route, handler)
	}
	return serveAll(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/libpod/_ping" {
			w.Header().Set(versionHeader, "5.4.2")
			return
		}
		http.StripPrefix("/v5.4.2/libpod", mux).ServeHTTP(w, r)
	}))
}

// serveAll answers on a Unix socket.
func serveAll(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	socket := listenAt(t)

	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return open(t, Options{Address: "unix://" + socket})
}

// listenAt returns a path for a socket, which must be short.
func listenAt(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "libpod-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// say answers with a status and a text.
func say(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}
