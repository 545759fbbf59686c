package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/workberth/workberth/remoteworkspace/sshhost"
	"github.com/workberth/workberth/remoteworkspace/sshhost/hostdir"
	"github.com/workberth/workberth/sandbox"
)

func newHostServe(a *app, h *hostFlags) *cobra.Command {
	var listen, metrics string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workspaces until SIGTERM",
		Long: `Serve the workspaces until SIGTERM or SIGINT, which let running sessions finish for a while
(drain in config.yaml); a second one ends them at once. SIGHUP reads workspaces and keys again,
ends connections that are not permitted any more, and opens the audit log anew. Settings in
config.yaml are read at the start.

A sandbox starts with the first session of its workspace and stays warm for a while after the last.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			cfg, err := d.Config()
			if err != nil {
				return err
			}
			if listen != "" {
				cfg.Listen = listen
			}
			if metrics != "" {
				cfg.Metrics = metrics
			}
			return a.serveHost(cmd.Context(), d, cfg)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address of SSH (default: listen in config.yaml, 127.0.0.1:2222)")
	cmd.Flags().StringVar(&metrics, "metrics", "", "address of /metrics and /healthz (default: metrics in config.yaml, off)")
	return cmd
}

// serveHost serves until a signal ends it.
func (a *app) serveHost(ctx context.Context, d *hostdir.Dir, cfg hostdir.Config) error {
	// Signals first: one that comes while the server starts must not end it halfway.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	registry := prometheus.NewRegistry()
	host, err := a.newHostServer(d, cfg, registry)
	if err != nil {
		return err
	}
	srv, audit := host.srv, host.audit
	defer audit.Close()
	a.warnWorkspaces(host.list)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return withHint(exitRefused, fmt.Errorf("listen on %s: %w", cfg.Listen, err), "choose another address with --listen, or see what listens there")
	}
	web, err := startWeb(ctx, cfg.Metrics, registry)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer web.close()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	fmt.Fprintf(a.stdout, "serving %d workspaces on %s\n", len(host.list), l.Addr())
	if web.addr != "" {
		fmt.Fprintf(a.stdout, "metrics on http://%s/metrics\n", web.addr)
	}
	for {
		select {
		case err := <-failed:
			return errors.Join(err, shutDown(srv, 0, signals))
		case <-ctx.Done():
			return shutDown(srv, cfg.Drain, signals)
		case s := <-signals:
			if s != syscall.SIGHUP {
				web.draining()
				return shutDown(srv, cfg.Drain, signals)
			}
			a.reloadHost(d, srv, host.opener, audit)
		}
	}
}

// hostServer is a server with what it was made of.
type hostServer struct {
	srv    *sshhost.Server
	opener *hostOpener
	audit  *auditLog
	list   []hostdir.Workspace
}

// newHostServer makes the server of a directory. The audit log is the caller's to close.
func (a *app) newHostServer(d *hostdir.Dir, cfg hostdir.Config, registry prometheus.Registerer) (*hostServer, error) {
	policy, list, err := d.Policy()
	if err != nil {
		return nil, err
	}
	key, err := d.HostKey()
	if err != nil {
		return nil, err
	}
	counts, err := sshhost.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	audit, err := openAudit(d.AuditPath())
	if err != nil {
		return nil, err
	}
	h := &hostServer{opener: &hostOpener{app: a}, audit: audit, list: list}
	h.opener.set(list)
	h.srv, err = sshhost.New(sshhost.Options{
		HostKeys: []ssh.Signer{key}, Opener: h.opener, Policy: policy, Limits: cfg.Limits.Server(), Audit: audit,
		Metrics: counts, SpoolDir: d.SpoolPath(), Logger: a.logger(),
	})
	if err != nil {
		return nil, errors.Join(err, audit.Close())
	}
	return h, nil
}

// warnWorkspaces tells, before anybody connects, which workspaces cannot be opened as things are.
// The others are served all the same.
func (a *app) warnWorkspaces(list []hostdir.Workspace) {
	for _, w := range list {
		_, res, err := a.resolve(hostTarget(w))
		if err == nil {
			_, err = a.openBackend(w.Backend, res.Spec.Config.Engine, a.logger())
		}
		if err != nil {
			_, remedy := classify(err)
			a.logger().Warn("a workspace cannot be opened as things are", "workspace", w.Name, "error", err, "remedy", remedy)
		}
	}
}

// reloadHost puts the directory's present content in force. What cannot be read changes
// nothing.
func (a *app) reloadHost(d *hostdir.Dir, srv *sshhost.Server, opener *hostOpener, audit *auditLog) {
	if err := audit.reopen(); err != nil {
		a.logger().Error("the audit log was not opened anew", "error", err)
	}
	policy, list, err := d.Policy()
	if err != nil {
		a.logger().Error("not reloaded; what was in force stays", "error", err)
		return
	}
	opener.set(list)
	a.warnWorkspaces(list)
	srv.Reload(policy)
	fmt.Fprintf(a.stdout, "serving %d workspaces\n", len(list))
}

// shutDown lets sessions finish for a while; another signal cuts that short.
func shutDown(srv *sshhost.Server, drain time.Duration, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return srv.Shutdown(ctx)
}

// hostOpener makes the sandboxes of workspaces in this process.
type hostOpener struct {
	app *app

	mu   sync.Mutex
	list map[string]hostdir.Workspace
}

func (o *hostOpener) set(list []hostdir.Workspace) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = make(map[string]hostdir.Workspace, len(list))
	for _, w := range list {
		o.list[w.Name] = w
	}
}

// Open makes the sandbox of a workspace, or starts it again.
func (o *hostOpener) Open(ctx context.Context, name string) (sandbox.Sandbox, error) {
	o.mu.Lock()
	w, ok := o.list[name]
	o.mu.Unlock()
	if !ok {
		return nil, &sandbox.Problem{What: "workspace " + name, Rule: "there is none of that name", Err: sandbox.ErrNotFound}
	}
	t := hostTarget(w)
	backend, res, err := o.app.resolve(t)
	if err != nil {
		return nil, err
	}
	if err := o.app.bringImage(ctx, t, backend, res.Spec.Config); err != nil {
		return nil, err
	}
	b, err := o.app.openBackend(backend, res.Spec.Config.Engine, o.app.logger())
	if err != nil {
		return nil, err
	}
	return b.Ensure(ctx, res.Spec)
}

// auditLog is a file that can be opened anew, after it was moved away.
type auditLog struct {
	path string

	mu sync.Mutex
	f  *os.File
}

func openAudit(path string) (*auditLog, error) {
	f, err := appendFile(path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &auditLog{path: path, f: f}, nil
}

func (l *auditLog) reopen() error {
	f, err := appendFile(l.path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	old := l.f
	l.f = f
	l.mu.Unlock()
	return old.Close()
}

func (l *auditLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

func (l *auditLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
