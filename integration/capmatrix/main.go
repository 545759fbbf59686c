// Command capmatrix writes docs/capabilities.md: which bridge offers what, as proved by the suite;
// which backend can do what on this machine; and which tests hold the module to which row of the
// contract. `make docs` runs it.
//
// Without -reports it first runs every test that hands a target to one of the two suites, and
// collects the reports that the suites write. It must not know what a capability means: it
// renders what the suites found out.
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
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "capmatrix:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("capmatrix", flag.ContinueOnError)
	f.SetOutput(stderr)
	root := f.String("root", ".", "`root` of the repository")
	out := f.String("out", "docs/capabilities.md", "`file` to write, relative to the root")
	reports := f.String("reports", "", "`directory` of reports that the suites have written; empty runs the suites")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if *reports == "" {
		dir, err := os.MkdirTemp("", "berth-reports-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := runSuites(ctx, *root, dir, stderr); err != nil {
			return err
		}
		*reports = dir
	}
	doc, err := generate(*root, *reports)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*root, *out), []byte(doc), 0o644)
}

// generate makes the document.
func generate(root, reports string) (string, error) {
	found, err := loadReports(reports)
	if err != nil {
		return "", err
	}
	stated, err := statedRows(root)
	if err != nil {
		return "", err
	}
	named, err := namedRows(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	render(&b, found, stated, named)
	return b.String(), nil
}
