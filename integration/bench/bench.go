package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// Bench is what the measures of one backend need. Its exported fields are set before Run and not
// changed after.
type Bench struct {
	// Name is one of Backends.
	Name string
	// Missing says why the backend cannot be had here; nothing below is used then.
	Missing string
	// Backend makes the sandboxes that are measured, with Config.
	Backend sandbox.Backend
	Config  sandbox.Config
	// Berth is the path of the berth program; its helper lies beside it. Empty leaves the
	// measures of the command line out.
	Berth string
	// Engine is the container engine to compare with, and the one that Backend uses if it uses one.
	// Without it, nil, the rows of a backend that does not need it say so.
	Engine *Engine
	// SSH is the server that the backend ssh is measured with; others need none.
	SSH *SSHServer
	// Dir is a private, existing directory for workspaces and state.
	Dir string
	// Short takes few samples and small sizes.
	Short bool
	// Log is told what is going on, one line per measure. Nil discards.
	Log io.Writer

	sessions atomic.Int64
}

// measure is one table of the report.
type measure struct {
	name, title string
	// how tells what is done; it is printed above the table.
	how func(k kind) string
	run func(ctx context.Context, b *Bench) ([]Row, error)
}

// measures lists all, in the order of the report.
func measures() []measure {
	return []measure{
		{"files", "File operations", filesHow, files},
		{"bulk", "Bulk transfer", bulkHow, bulk},
		{"tree", "A tree of small files", treeHow, tree},
		{"command", "A command in a warm sandbox", commandHow, warmCommand},
		{"create", "Create a sandbox and run the first command", createHow, create},
		{"terminate", "Terminate a tree of processes", terminateHow, terminate},
		{"concurrent", "Commands at the same time", concurrentHow, concurrent},
		{"sandboxes", "Sandboxes at the same time", sandboxesHow, sandboxes},
	}
}

// measuresOf lists the measures of a backend.
func measuresOf(backend string) []measure {
	if backend == sshBackend {
		return sshMeasures()
	}
	return measures()
}

// Names lists the measures of a backend; an empty one stands for all.
func Names(backend string) []string {
	list := measuresOf(backend)
	if backend == "" {
		list = append(list, sshMeasures()...)
	}
	var names []string
	for _, m := range list {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// Run makes the measures whose name matches only (nil: all) of one backend after the other. A measure
// that does not work is noted in its section and does not stop the others; the error is ctx's, or
// says that there was nothing to measure.
func Run(ctx context.Context, only *regexp.Regexp, now time.Time, benches ...*Bench) (*Report, error) {
	if only != nil && !slices.ContainsFunc(Names(""), only.MatchString) {
		return nil, fmt.Errorf("no measure matches %s; there are %q", only, Names(""))
	}
	r := &Report{Machine: describeMachine(ctx, benches, now.Format(time.DateOnly)), Load: [2]float64{loadAverage(), 0}}
	measured := false
	for _, b := range benches {
		part := Part{Backend: b.Name, Missing: b.Missing}
		if b.Missing == "" {
			measured, r.Short = true, r.Short || b.Short
			sections, err := b.sections(ctx, only)
			if err != nil {
				return nil, err
			}
			part.Sections = sections
		}
		r.Parts = append(r.Parts, part)
	}
	if !measured {
		return nil, errors.New("there is no backend to measure here")
	}
	r.Load[1] = loadAverage()
	return r, nil
}

// sections makes measures.
func (b *Bench) sections(ctx context.Context, only *regexp.Regexp) ([]Section, error) {
	if b.Log == nil {
		b.Log = io.Discard
	}
	var out []Section
	for _, m := range measuresOf(b.Name) {
		if only != nil && !only.MatchString(m.name) {
			continue
		}
		start := time.Now()
		s := Section{Name: m.name, Title: m.title, How: m.how(b.kind())}
		rows, err := m.run(ctx, b)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, row := range rows {
			s.Rows = append(s.Rows, row.judged())
		}
		if err != nil {
			s.Err = err.Error()
		}
		out = append(out, s)
		fmt.Fprintf(b.Log, "%-11s %-11s %6.1f s  %s\n", b.Name, m.name, time.Since(start).Seconds(), outcome(s))
	}
	return out, nil
}

// kind is the kind of the backend.
func (b *Bench) kind() kind { return kindOf(b.Name) }

// outcome is a section in a few words.
func outcome(s Section) string {
	if s.Err != "" {
		return "did not work: " + s.Err
	}
	met, missed := 0, 0
	for _, r := range s.Rows {
		switch r.Verdict {
		case Met:
			met++
		case Missed:
			missed++
		}
	}
	return fmt.Sprintf("%d rows, %d budgets met, %d missed", len(s.Rows), met, missed)
}

// pick chooses between the numbers of a full and of a short run.
func (b *Bench) pick(full, short int) int {
	if b.Short {
		return short
	}
	return full
}

// workspace makes an empty workspace.
func (b *Bench) workspace() (string, error) {
	return os.MkdirTemp(b.Dir, "workspace-")
}

// spec asks for a sandbox of its own on a workspace.
func (b *Bench) spec(workspace string) sandbox.Spec {
	return sandbox.Spec{
		Scope: sandbox.ScopeSession, Session: fmt.Sprintf("bench-%d", b.sessions.Add(1)),
		Workspace: workspace, Config: b.Config,
	}
}

// box is a sandbox made for a measure. It does not embed the sandbox, whose optional interfaces
// would be lost.
type box struct {
	sb        sandbox.Sandbox
	backend   sandbox.Backend
	workspace string // on this machine
}

// open makes a sandbox on an empty workspace; change, when given, may alter what is asked for, and
// name another workspace.
func (b *Bench) open(ctx context.Context, change func(*sandbox.Spec)) (*box, error) {
	spec := b.spec("")
	if change != nil {
		change(&spec)
	}
	if spec.Workspace == "" {
		ws, err := b.workspace()
		if err != nil {
			return nil, err
		}
		spec.Workspace = ws
	}
	sb, err := b.Backend.Ensure(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &box{sb: sb, backend: b.Backend, workspace: spec.Workspace}, nil
}

// remove ends the sandbox and deletes its workspace, also after the end of ctx.
func (x *box) remove(ctx context.Context) error {
	return errors.Join(x.end(ctx), os.RemoveAll(x.workspace))
}

// end ends the sandbox, also after the end of ctx, and leaves the workspace.
func (x *box) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	id := x.sb.Info().ID
	return errors.Join(x.sb.Close(), x.backend.Remove(ctx, id))
}

// bridge makes an unguarded bridge.
func (x *box) bridge(ctx context.Context) (fsbridge.Bridge, error) { return x.sb.Bridge(ctx, nil) }

// file writes a file on this machine, in the workspace.
func (x *box) file(name string, content []byte) error {
	path := filepath.Join(x.workspace, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// trueCommand runs /bin/true and wants it to succeed.
func trueCommand(ctx context.Context, sb sandbox.Sandbox) error {
	r, err := sandbox.Run(ctx, sb, sandbox.Command{Argv: []string{"/bin/true"}}, nil, sandbox.RunOptions{})
	return succeeded(r, err)
}

// succeeded turns everything but a clean end into an error.
func succeeded(r sandbox.Result, err error) error {
	switch {
	case err != nil:
		return err
	case r.Status != sandbox.ExitStatus{} || r.CleanupErr != nil:
		return errors.Join(fmt.Errorf("status %+v, stderr %q", r.Status, tail(string(r.Stderr.Bytes()))), r.CleanupErr)
	}
	return nil
}

// compare makes the row of ours against one peer that took part in a race. When ours failed, its
// error is the result; a peer that failed is noted in the row.
func compare(row Row, sense Sense, ours, peer timed) (Row, error) {
	if ours.err != nil {
		return row, ours.err
	}
	row.Sense, row.Peer = sense, peer.name
	row.Ours, row.Theirs = ours.times.quantity(Seconds), peer.times.quantity(Seconds)
	if peer.err != nil {
		row.Theirs, row.Note = nil, "the peer failed: "+peer.err.Error()
	}
	return row, nil
}

// compareAll makes the rows of ours, the first of the results of a race, against each other one. The
// budgets are those against the first of them.
func compareAll(measured string, sense Sense, results []timed, budgets ...Budget) (rows []Row, err error) {
	for i, peer := range results[1:] {
		row := Row{Measured: measured}
		if i < len(budgets) {
			row.Budget = budgets[i]
		}
		if row, err = compare(row, sense, results[0], peer); err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// noEngine is why a row that compares with an engine may have nothing to show.
const noEngine = "no engine here"

// lacksEngine is a row that lacks its peer.
func lacksEngine(row Row, peer string) Row {
	row.Peer, row.Sense, row.Note = peer, Speed, noEngine
	return row
}
