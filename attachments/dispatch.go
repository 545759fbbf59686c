package attachments

import (
	"context"
	"fmt"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// DefaultTimeout is how long the preparation of all files of one input may take.
const DefaultTimeout = 120 * time.Second

// PrepareRequest asks for the files of one input.
type PrepareRequest struct {
	// Media are the files of the admitted input, or of the steering input.
	Media []MediaFact
	// Stored resolves the stored facts of the same input, those included whose transcript
	// record was deferred. It is called, once, when preparation is required. Nil means that
	// Media is all there is. Keeps ATT-26.
	Stored func(ctx context.Context) ([]MediaFact, error)
	// Provider prepares the files where the workspace is. Nil: nobody does.
	Provider Provider
	// RequirePreparation makes it all or nothing: each file gets a path, or the input is
	// blocked.
	RequirePreparation bool
	// AssertCurrent is the guard of the turn, checked around each file. Nil: nothing can end
	// it but ctx.
	AssertCurrent fsbridge.AssertFunc
	// Timeout bounds everything together. Zero means DefaultTimeout.
	Timeout time.Duration
	// MaxChars bounds the note, in UTF-16 code units; one that is longer is left out as a
	// whole, which is a failure when preparation is required. Zero means no bound.
	MaxChars int
}

// PrepareForWorkspace prepares the files of an input before it is dispatched
// (prepareAgentWorkspaceAttachments): before each attempt and before each steering input.
//
// Without RequirePreparation the provider is called once, with all files. What it does not
// cover keeps its ordinary handling, and so does everything when there is no provider; an
// error of it blocks. With RequirePreparation it is called for one file after the other,
// each of which must get a note of its own. Text alone needs no provider.
//
// An error matches ErrDispatchBlocked and means that the input must not be sent. The
// original facts are not changed. Keeps ATT-16 to ATT-18, ATT-25 to ATT-33, ATT-42.
func PrepareForWorkspace(ctx context.Context, req PrepareRequest) (Note, error) {
	if req.Timeout == 0 {
		req.Timeout = DefaultTimeout
	}
	if req.Timeout < 0 || req.MaxChars < 0 {
		return Note{}, blocked("", fmt.Errorf("timeout %v, maxChars %d: neither may be negative: %w", req.Timeout, req.MaxChars, ErrInvalid))
	}
	ctx, cancel := context.WithTimeout(ctx, req.Timeout)
	defer cancel()
	note, name, err := req.prepare(ctx, guards(req.AssertCurrent))
	if err != nil {
		return Note{}, blocked(name, overtime(ctx, req.Timeout, err))
	}
	return note, nil
}

// prepare also names the file an error is about, where it is about one.
func (req PrepareRequest) prepare(ctx context.Context, guard fsbridge.AssertFunc) (note Note, name string, err error) {
	if err := current(ctx, guard); err != nil {
		return Note{}, "", err
	}
	media := req.Media
	if req.RequirePreparation && req.Stored != nil {
		if media, err = req.Stored(ctx); err != nil {
			return Note{}, "", fmt.Errorf("the stored attachments cannot be told: %w", err)
		}
	}
	files := filesOf(media)
	switch {
	case len(files) == 0:
	case req.Provider == nil && req.RequirePreparation:
		return Note{}, files[0].Name, ErrNoProvider
	case req.Provider == nil:
	case req.RequirePreparation:
		note, name, err = req.each(ctx, files, guard)
	default:
		note, err = req.Provider(ctx, TurnFiles{Files: files, AssertCurrent: guard})
	}
	if err != nil {
		return Note{}, name, err
	}
	// The provider may have taken its time: whatever was true before is stale.
	if err := current(ctx, guard); err != nil {
		return Note{}, "", err
	}
	if req.MaxChars > 0 && note.Chars() > req.MaxChars {
		if req.RequirePreparation {
			return Note{}, "", fmt.Errorf("%w: the note has %d characters, and %d fit", ErrUnprepared, note.Chars(), req.MaxChars)
		}
		return Note{Files: note.Files}, "", nil
	}
	return note, "", nil
}

// each prepares one file after the other. Keeps ATT-27, ATT-28.
func (req PrepareRequest) each(ctx context.Context, files []MediaFact, guard fsbridge.AssertFunc) (Note, string, error) {
	notes := make([]Note, 0, len(files))
	for i, f := range files {
		if err := current(ctx, guard); err != nil {
			return Note{}, f.Name, err
		}
		n, err := req.Provider(ctx, TurnFiles{Files: files[i : i+1 : i+1], AssertCurrent: guard})
		if err != nil {
			return Note{}, f.Name, err
		}
		if n.Empty() {
			err := ErrUnprepared
			if len(n.Files) == 1 && n.Files[0].Reason != "" {
				err = fmt.Errorf("%w: %s", ErrUnprepared, n.Files[0].Reason)
			}
			return Note{}, f.Name, err
		}
		notes = append(notes, n)
	}
	return join(notes), "", nil
}
