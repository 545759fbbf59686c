// Command benchreport measures what docs/design.md promises about speed, memory and reliability,
// and writes docs/benchmarks.md. `make bench` runs it with programs built for it and, where that is
// possible, with container engines of its own.
//
// It ends with 1 when something did not work, and with 0 when it was merely slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/workberth/workberth/integration/bench"
)

// options are the flags.
type options struct {
	bin, out, json, only  string
	docker, podman, image string
	backends              names
	short                 bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	f := flag.NewFlagSet("benchreport", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.bin, "bin", "bin", "`directory` of the programs berth and berth-guest, as make build makes them")
	f.StringVar(&o.out, "out", "-", "`file` for the document; - is standard output")
	f.StringVar(&o.json, "json", "", "`file` for the same as JSON; - is standard output")
	f.StringVar(&o.only, "only", "", "regular `expression` of the measures to make: "+strings.Join(bench.Names(""), ", "))
	f.Var(&o.backends, "backend", "`names` of the backends to measure, with commas or as several flags (default "+strings.Join(bench.Backends(), ",")+")")
	f.StringVar(&o.docker, "docker", "", "Unix `socket` of a Docker engine, to measure and to compare with; one that does not serve anything else")
	f.StringVar(&o.podman, "podman", "", "Unix `socket` of a Podman service, likewise")
	f.StringVar(&o.image, "image", "berth-bench", "`image` with a shell and the usual tools, known to the engines")
	f.BoolVar(&o.short, "short", false, "few samples and small sizes: shows that it works")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if len(o.backends) == 0 {
		o.backends = bench.Backends()
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	report, err := o.measure(ctx, only, stderr)
	if err != nil {
		return err
	}
	if err := write(o.out, stdout, report.WriteMarkdown); err != nil {
		return err
	}
	if o.json != "" {
		if err := write(o.json, stdout, report.WriteJSON); err != nil {
			return err
		}
	}
	if bad := report.Failures(); len(bad) > 0 {
		return fmt.Errorf("did not work: %s", strings.Join(bad, "; "))
	}
	return nil
}

// measure sets everything up in a private directory, measures, and takes it down again.
func (o options) measure(ctx context.Context, only *regexp.Regexp, log io.Writer) (_ *bench.Report, err error) {
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Copies, so that the processes of this run can be told from others of the same programs.
	for _, name := range []string{"berth", "berth-guest"} {
		if err := copyProgram(filepath.Join(dir, name), filepath.Join(o.bin, name)); err != nil {
			return nil, fmt.Errorf("%w; run make build", err)
		}
	}
	engines, err := o.engines(ctx)
	if err != nil {
		return nil, err
	}
	var benches []*bench.Bench
	for _, name := range o.backends {
		b, done, failed := o.open(ctx, name, dir, engines)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, done()) }()
		b.Log = log
		benches = append(benches, b)
	}
	return bench.Run(ctx, only, time.Now(), benches...)
}

// copyProgram copies an executable file.
func copyProgram(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// write writes to a file, or to standard output.
func write(path string, stdout io.Writer, render func(io.Writer) error) error {
	if path == "-" {
		return render(stdout)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(render(f), f.Close())
}
