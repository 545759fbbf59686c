package attachments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// Placement says where a harness executes.
type Placement string

// PlacementLocalHost is unconfined, on the host's own machine.
const PlacementLocalHost Placement = "local-host"

// Connection is what a harness knows of its effective connection to the runtime that
// executes. The zero value is evidence of nothing.
type Connection struct {
	// SameMachine: the runtime has been seen to run on the host's machine.
	SameMachine bool
	// Unconfined: it has been seen to run without a sandbox.
	Unconfined bool
}

// Placement is the placement that the connection proves, or ErrPlacement. That a workspace
// has no adapter proves nothing. Keeps ATT-01, ATT-02.
func (c Connection) Placement() (Placement, error) {
	if !c.SameMachine || !c.Unconfined {
		return "", ErrPlacement
	}
	return PlacementLocalHost, nil
}

// InputRequest asks for local paths.
type InputRequest struct {
	// Placement is what the harness has confirmed; nothing but PlacementLocalHost is served.
	Placement Placement
	// MaxChars is the room for the note in the native input, in UTF-16 code units.
	MaxChars int
	// AssertCurrent is the guard of the current turn. Needed.
	AssertCurrent fsbridge.AssertFunc
	// Turn is set when the note is for a steering input. Keeps ATT-06.
	Turn *Turn
}

// Turn is a steering input.
type Turn struct {
	Media []MediaFact
	// Recorder is the record of the input (userTurnTranscriptRecorder). When set it is asked
	// for the original media, of which Media may have lost some. Nil: Media is all there is.
	Recorder TurnRecorder
}

// TurnRecorder keeps the record of a user's turn.
type TurnRecorder interface {
	// TurnMedia gives the media the turn came with.
	TurnMedia(ctx context.Context) ([]MediaFact, error)
}

// PrepareInput gives an unconfined harness on this machine the paths of the files of its
// input (prepareInputAttachments): those that are regular files which the host has just
// opened itself, under the policy captured at admission. The paths are for this turn.
//
// There is no note, and no error, when no file qualifies, when the complete note has more
// than MaxChars, and wherever another way to files is in charge (Situation, and policies
// without reading or with the workspace only). A refused placement, a guard or an authority
// that fails, at the start, in between or at the end, is an error, and no path is told.
// Keeps ATT-01 to ATT-08, ATT-11, ATT-13, ATT-14.
func (a *Admission) PrepareInput(ctx context.Context, req InputRequest) (Note, error) {
	note, err := a.prepareInput(ctx, req)
	if err != nil {
		return Note{}, fmt.Errorf("local attachment paths: %w", err)
	}
	return note, nil
}

func (a *Admission) prepareInput(ctx context.Context, req InputRequest) (Note, error) {
	switch {
	case req.Placement != PlacementLocalHost:
		return Note{}, ErrPlacement
	case req.AssertCurrent == nil:
		return Note{}, fmt.Errorf("there is no guard of the current turn: %w", ErrInvalid)
	}
	guard := guards(req.AssertCurrent, a.opts.Authority)
	if err := current(ctx, guard); err != nil {
		return Note{}, err
	}
	if a.opts.Situation != (Situation{}) || a.opts.Policy.NoRead || a.opts.Policy.WorkspaceOnly {
		return Note{}, nil
	}
	media, err := a.inputMedia(ctx, req.Turn)
	if err != nil {
		return Note{}, err
	}
	var files []PreparedFile
	for _, f := range filesOf(media) {
		if err := current(ctx, guard); err != nil {
			return Note{}, err
		}
		p, err := a.verify(ctx, f)
		if ctx.Err() != nil {
			return Note{}, ctx.Err()
		}
		if err != nil {
			a.log.Debug("attachment has no local path", "name", f.Name, "error", err)
			p = PreparedFile{Fact: f, Outcome: NotCovered, Reason: err.Error()}
		}
		files = append(files, p)
	}
	note := makeNote(files)
	if note.Empty() || note.Chars() > req.MaxChars {
		note = Note{}
	}
	// Whatever was true before the files were opened is stale.
	if err := current(ctx, guard); err != nil {
		return Note{}, err
	}
	return note, nil
}

// inputMedia is the media a note is about: the turn's, or the admitted input's original.
// Keeps ATT-05, ATT-06.
func (a *Admission) inputMedia(ctx context.Context, turn *Turn) ([]MediaFact, error) {
	switch {
	case turn == nil:
		return a.ResolveInputMedia(ctx)
	case turn.Recorder != nil:
		return turn.Recorder.TurnMedia(ctx)
	}
	return turn.Media, nil
}

// verify finds a path on this machine and opens it. Keeps ATT-04.
func (a *Admission) verify(ctx context.Context, f MediaFact) (PreparedFile, error) {
	if f.Ref == "" {
		return a.verifyPath(f)
	}
	path, ref, err := a.opts.Store.LocalPath(ctx, f.Ref)
	if err != nil {
		return PreparedFile{}, err
	}
	if err := a.opts.Policy.allow(ref.Type, ref.Size); err != nil {
		return PreparedFile{}, err
	}
	f.Type, f.Size, f.Digest = ref.Type, ref.Size, ref.Digest
	if f.Name == "" {
		f.Name = ref.Name
	}
	if f.Origin == "" {
		f.Origin = ref.Origin
	}
	return local(f, path)
}

// verifyPath is verify for a file outside the media store: it must lie below a directory of
// the policy, also through links.
func (a *Admission) verifyPath(f MediaFact) (PreparedFile, error) {
	if f.Path == "" {
		return PreparedFile{}, errors.New("the media store has no copy of it")
	}
	if !filepath.IsAbs(f.Path) {
		return PreparedFile{}, fmt.Errorf("its path is not absolute: %w", ErrInvalid)
	}
	for _, dir := range a.opts.Policy.Roots {
		rel, err := filepath.Rel(dir, filepath.Clean(f.Path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		size, err := openBelow(dir, rel)
		if err != nil {
			return PreparedFile{}, err
		}
		if err := a.opts.Policy.allow(f.Type, size); err != nil {
			return PreparedFile{}, err
		}
		f.Size = size
		if f.Name == "" {
			f.Name = filepath.Base(f.Path)
		}
		return local(f, f.Path)
	}
	return PreparedFile{}, fmt.Errorf("the policy names no directory it lies in: %w", fsbridge.ErrOutsideRoot)
}

// openBelow opens a regular file below a directory and returns its size.
func openBelow(dir, rel string) (int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	// Looked at first: to open a device can have an effect.
	if info, err := root.Stat(rel); err != nil {
		return 0, err
	} else if !info.Mode().IsRegular() {
		return 0, fsbridge.ErrNotRegular
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fsbridge.ErrNotRegular
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func local(f MediaFact, path string) (PreparedFile, error) {
	if !quotable(path) {
		return PreparedFile{}, fmt.Errorf("its path is not UTF-8: %w", ErrInvalid)
	}
	return PreparedFile{Fact: f, Outcome: Local, Path: path}, nil
}

// InputPreparer is PrepareInput as a host offers it; nil on an older host.
type InputPreparer func(ctx context.Context, req InputRequest) (Note, error)

// PrepareExecutionInput is what a local harness executes: its input, with the note below it
// where the host offers the call and the note fits. On an older host, nil, the input goes on
// as it is, with its inline attachments, and that is no error. Keeps ATT-08, ATT-09, ATT-12.
func PrepareExecutionInput(ctx context.Context, prepare InputPreparer, req InputRequest, input string) (string, error) {
	if prepare == nil {
		return input, nil
	}
	note, err := prepare(ctx, req)
	if err != nil {
		return "", err
	}
	if note.Chars() > req.MaxChars {
		return input, nil
	}
	return ExecutionInput(input, note), nil
}

// Provider is PrepareInput as a provider for PrepareForWorkspace, for a workspace of this
// machine that is bound to nothing: the local paths count as its preparation. req.Turn is
// set for each call.
func (a *Admission) Provider(req InputRequest) Provider {
	return func(ctx context.Context, files TurnFiles) (Note, error) {
		r := req
		r.AssertCurrent = guards(req.AssertCurrent, files.AssertCurrent)
		r.Turn = &Turn{Media: files.Files}
		return a.PrepareInput(ctx, r)
	}
}
