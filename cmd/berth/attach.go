package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/owner"
)

// attach is one "berth attach".
type attach struct {
	*app
	t        *target
	require  bool
	maxChars int
	store    string
	origin   string
	limit    string
	timeout  time.Duration
	jsonOut  bool
}

func newAttach(a *app) *cobra.Command {
	x := &attach{app: a, t: &target{}}
	cmd := &cobra.Command{
		Use:   "attach FILE...",
		Short: "Give files of this machine to the agent in the sandbox, and print the note that names them",
		Long: `Give files of this machine to the agent in the sandbox, and print the note to add to
its input: one line per file, with the path inside.

A file is put at media/inbound/<start of its SHA-256>/<its name, cleaned>. Nothing is
ever overwritten: a file that is there already is proved by its hash and not sent
again, and where another file has the name the new one gets "name-2.ext". Names stand
in the note as JSON strings, so no name can add to it.

A file that cannot be taken (missing, a directory, too large) is reported and the
others are attached; with --require it is all or nothing. When a transfer fails there
is no note. Exit code 1 when any file was not attached, 124 when --timeout ended it.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	x.t.register(f)
	f.BoolVar(&x.require, "require", false, "all or nothing: a single file that cannot be attached fails the whole call")
	f.IntVar(&x.maxChars, "max-chars", 0, "leave the note out when it has more UTF-16 characters; 0 means no bound")
	f.StringVar(&x.origin, "origin", "", "where the files came from, for the note")
	f.StringVar(&x.limit, "limit", "", "largest file, such as 2g; a limit below 50m does not reduce that (default 50m)")
	f.DurationVar(&x.timeout, "timeout", attachments.DefaultTimeout, "time for all transfers together")
	f.StringVar(&x.store, "store", "", "directory of the media store that files pass through (default: media in the state directory)")
	f.BoolVar(&x.jsonOut, "json", false, "note and result of each file as one JSON object")
	return cmd
}

// attached is the result of one file.
type attached struct {
	File       string `json:"file"`
	FileBase64 string `json:"fileBase64,omitempty"`
	// Path is where it is in the sandbox.
	Path    string              `json:"path,omitempty"`
	SHA256  fsbridge.Digest     `json:"sha256,omitempty"`
	Size    int64               `json:"size"`
	Type    string              `json:"type,omitempty"`
	Outcome attachments.Outcome `json:"outcome"`
	Error   string              `json:"error,omitempty"`

	ref mediastore.Reference
	err error
}

// refused: the file could not be taken in.
const refused attachments.Outcome = "refused"

// transient marks the references of this command: they are released when it ends, and those of
// one that was killed when another ends a day later.
const transient = "berth attach"

func (x *attach) run(ctx context.Context, paths []string) error {
	limit, err := x.check()
	if err != nil {
		return err
	}
	store, err := x.open(limit)
	if err != nil {
		return storeError(err)
	}
	defer store.Close()
	files := make([]attached, 0, len(paths))
	defer func() { x.tidy(context.WithoutCancel(ctx), store, files) }()
	failed := 0
	for _, p := range paths {
		f := x.take(ctx, store, p)
		if files = append(files, f); f.err == nil {
			continue
		}
		if failed++; x.require || ctx.Err() != nil {
			return storeError(f.err)
		}
		x.report(storeError(f.err))
	}
	note, err := x.stage(ctx, store, limit, files)
	if err != nil {
		return blockedError(err)
	}
	return x.print(note, files, failed)
}

// check refuses flags that cannot be meant.
func (x *attach) check() (limit int64, err error) {
	if x.limit != "" {
		if limit, err = config.ParseSize(x.limit); err != nil || limit <= 0 {
			return 0, &usageError{fmt.Errorf("--limit %q is no size; give one such as 200m or 2g", x.limit)}
		}
	}
	if x.maxChars < 0 || x.timeout <= 0 {
		return 0, &usageError{errors.New("--max-chars must not be negative, and --timeout must be positive")}
	}
	return attachments.LimitInForce(limit), nil
}

// open opens the media store.
func (x *attach) open(limit int64) (*mediastore.Store, error) {
	dir := x.store
	if dir == "" {
		state := owner.DefaultStateDir(x.getenv)
		if state == "" {
			return nil, &usageError{errors.New("there is no state directory; set BERTH_STATE_DIR or give --store")}
		}
		dir = filepath.Join(state, "media")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return mediastore.Open(mediastore.Options{Dir: abs, Limit: limit, Logger: x.logger()})
}

// take takes one file into the store.
func (x *attach) take(ctx context.Context, store *mediastore.Store, path string) attached {
	f := attached{}
	f.File, f.FileBase64 = reversible(path)
	f.ref, f.err = store.IngestFile(ctx, path, mediastore.Facts{Origin: transient})
	if f.err != nil {
		f.Outcome, f.Error = refused, f.err.Error()
		return f
	}
	f.SHA256, f.Size, f.Type = f.ref.Digest, f.ref.Size, f.ref.Type
	return f
}

// stage puts what was taken into the sandbox, and fills in where.
func (x *attach) stage(ctx context.Context, store *mediastore.Store, limit int64, files []attached) (attachments.Note, error) {
	var facts []attachments.MediaFact
	for _, f := range files {
		if f.err == nil {
			fact := attachments.FactOf(f.ref)
			if x.origin != "" {
				fact.Origin = x.origin
			}
			facts = append(facts, fact)
		}
	}
	if len(facts) == 0 {
		return attachments.Note{}, nil
	}
	s, err := x.app.open(ctx, x.t)
	if err != nil {
		return attachments.Note{}, err
	}
	defer s.Close()
	bars := &transferBars{app: x.app}
	defer bars.close()
	p, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{
		Store: store, Limit: limit, Timeout: x.timeout, Progress: bars.show, Logger: x.logger(),
		CreateBridge: func(context.Context, fsbridge.AssertFunc) (fsbridge.Bridge, error) { return s.Bridge(), nil },
	})
	if err != nil {
		return attachments.Note{}, err
	}
	note, err := attachments.PrepareForWorkspace(ctx, attachments.PrepareRequest{
		Media: facts, Provider: p.Prepare, RequirePreparation: x.require, Timeout: x.timeout, MaxChars: x.maxChars,
	})
	if err != nil {
		return attachments.Note{}, err
	}
	results := note.Files
	for i := range files {
		if files[i].err == nil {
			files[i].Outcome, files[i].Path = results[0].Outcome, results[0].Path
			results = results[1:]
		}
	}
	return note, nil
}

// print shows the note, and what became of each file with --json.
func (x *attach) print(note attachments.Note, files []attached, failed int) error {
	if note.Empty() && failed < len(files) {
		fmt.Fprintf(x.stderr, "berth: the files are attached; their note has more than %d characters and is left out\n", x.maxChars)
	}
	var err error
	switch {
	case x.jsonOut:
		err = writeJSON(x.stdout, map[string]any{"note": note.Text, "files": files})
	case !note.Empty():
		_, err = fmt.Fprintln(x.stdout, note.Text)
	}
	if err == nil && failed > 0 {
		err = commandExit(exitFailure)
	}
	return err
}

// tidy gives up what was taken: the sandbox has it, or will not get it.
func (x *attach) tidy(ctx context.Context, store *mediastore.Store, files []attached) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var errs []error
	for _, f := range files {
		if f.err == nil {
			errs = append(errs, store.Release(ctx, f.ref.ID))
		}
	}
	old := time.Now().Add(-24 * time.Hour)
	refs, err := store.References(ctx)
	errs = append(errs, err)
	for _, r := range refs {
		if r.Origin == transient && r.Created.Before(old) {
			errs = append(errs, store.Release(ctx, r.ID))
		}
	}
	_, err = store.Collect(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		x.logger().Warn("the media store could not be tidied", "error", firstLine(err.Error()))
	}
}

// storeError gives an error of the media store its remedy.
func storeError(err error) error {
	if e, ok := errors.AsType[*mediastore.StoreError](err); ok && e.Hint != "" {
		return withHint(exitFailure, err, e.Hint)
	}
	return err
}

// blockedError gives a failed preparation its remedy and exit code.
func blockedError(err error) error {
	e, ok := errors.AsType[*attachments.BlockedError](err)
	if !ok || errors.Is(err, context.Canceled) {
		return err
	}
	hint := e.Hint
	if p, ok := errors.AsType[*fsbridge.PathError](err); ok && hint == "" {
		hint = pathRemedy(p)
	}
	code := exitFailure
	if errors.Is(err, context.DeadlineExceeded) {
		code, hint = exitTimeout, "allow more with --timeout; what has arrived is not sent twice"
	}
	return withHint(code, err, hint)
}

// transferBars shows the progress of one file after the other.
type transferBars struct {
	app  *app
	bar  io.WriteCloser
	of   mediastore.RefID
	sent int64
	buf  [64 << 10]byte
}

func (b *transferBars) show(p attachments.Progress) {
	if b.bar == nil || b.of != p.Fact.Ref {
		b.close()
		b.bar, b.of, b.sent = b.app.progress("attaching "+p.Fact.Name, p.Fact.Size), p.Fact.Ref, 0
	}
	for b.sent < p.Sent {
		n := min(p.Sent-b.sent, int64(len(b.buf)))
		b.sent += n
		_, _ = b.bar.Write(b.buf[:n]) // it counts and cannot fail
	}
}

func (b *transferBars) close() {
	if b.bar != nil {
		_ = b.bar.Close() // a bar that cannot be cleared is no failure
		b.bar = nil
	}
}
