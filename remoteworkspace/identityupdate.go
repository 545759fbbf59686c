package remoteworkspace

import (
	"context"
	"errors"
)

// identityAttempts bounds how often an update starts over because somebody else saved
// the document in between.
const identityAttempts = 3

// UpdateIdentityRequest changes fields of IDENTITY.md.
type UpdateIdentityRequest struct {
	// Dir is the workspace directory.
	Dir string
	IdentityPatch
}

// IdentityResult is what an update has made.
type IdentityResult struct {
	// Document describes IDENTITY.md, without content.
	Document
	Identity Identity
	// Changed is false when every field had its value already; nothing was written then.
	Changed bool
}

// UpdateIdentity is the identity form of agents.update: it reads IDENTITY.md, changes
// the lines of the given fields and saves it if nobody else has meanwhile; otherwise it
// starts over, at most three times. A missing document is made. Like Set it is no
// lock, and it never repeats a save whose outcome is unknown. Keeps RWS-02, RWS-11.
func (s *DocumentService) UpdateIdentity(ctx context.Context, r UpdateIdentityRequest) (IdentityResult, error) {
	op := Operation{Method: MethodUpdateIdentity, Dir: r.Dir, Name: identityName}
	o, err := s.begin(ctx, op)
	if err != nil {
		return IdentityResult{}, op.fail(err)
	}
	defer o.close()
	leave, err := s.saves.enter(ctx, o.key+"\x00"+identityName)
	if err != nil {
		return IdentityResult{}, op.fail(err)
	}
	defer leave()
	for attempt := 1; ; attempt++ {
		res, err := s.updateOnce(ctx, o, r.IdentityPatch)
		if errors.Is(err, ErrConflict) && attempt < identityAttempts {
			continue
		}
		return res, op.fail(o.explain(ctx, err, false))
	}
}

// updateOnce reads, changes and saves.
func (s *DocumentService) updateOnce(ctx context.Context, o *opened, patch IdentityPatch) (IdentityResult, error) {
	d, err := s.read(ctx, o, identityName)
	if err != nil {
		return IdentityResult{}, err
	}
	data, err := patch.Apply(d.Content)
	if err != nil {
		return IdentityResult{}, err
	}
	res := IdentityResult{Identity: ParseIdentity(data)}
	if hashOf(data) == d.Hash || d.Missing && len(data) == 0 {
		d.Content = nil
		res.Document = d
		return res, nil
	}
	if int64(len(data)) > s.max {
		return IdentityResult{}, s.tooLarge(int64(len(data)))
	}
	hash := string(d.Hash) // empty for a missing document: it must still be missing
	want, err := expectation(&hash)
	if err != nil {
		return IdentityResult{}, err
	}
	saved, err := s.save(ctx, o, identityName, data, want)
	if err != nil {
		return IdentityResult{}, err
	}
	res.Document, res.Changed = saved.Document, true
	return res, nil
}
