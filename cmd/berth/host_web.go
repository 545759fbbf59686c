package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// hostWeb serves /metrics and /healthz of a host. Off, it has no address.
type hostWeb struct {
	addr    string
	srv     *http.Server
	leaving atomic.Bool
}

// startWeb listens on an address; an empty one is off.
func startWeb(ctx context.Context, addr string, reg *prometheus.Registry) (*hostWeb, error) {
	w := &hostWeb{}
	if addr == "" {
		return w, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, withHint(exitRefused, fmt.Errorf("listen on %s for metrics: %w", addr, err), "choose another address with --metrics")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		if w.leaving.Load() {
			http.Error(rw, "draining", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(rw, "ok\n") // a client that has left needs no answer
	})
	w.addr = l.Addr().String()
	w.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := w.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.leaving.Store(true)
		}
	}()
	return w, nil
}

// draining makes /healthz say that nothing new should come.
func (w *hostWeb) draining() { w.leaving.Store(true) }

func (w *hostWeb) close() {
	if w.srv != nil {
		_ = w.srv.Close() // nothing of value is lost
	}
}
