package remoteworkspace

import (
	"context"

	"github.com/workberth/workberth/attachments"
)

// MethodAttachments is the preparation of a turn's attachments.
const MethodAttachments Method = "attachments.prepare"

// PrepareAttachments prepares the files of an input where its workspace is, before it is
// dispatched: see attachments.PrepareForWorkspace, whose request and errors these are. For a
// bound workspace the provider is that of its access, the same registration from the first
// file to the last, and none where the access has none; req.Provider counts for workspaces of
// this machine only. A binding that is not ready blocks files and lets text pass. Keeps
// ATT-15, ATT-16, ATT-29, ATT-31, ATT-32.
func (w *Workspaces) PrepareAttachments(ctx context.Context, dir string, req attachments.PrepareRequest) (attachments.Note, error) {
	op := Operation{Method: MethodAttachments, Dir: dir}
	guard, err := w.authorize(ctx, op)
	if err != nil {
		return attachments.Note{}, op.fail(err)
	}
	req.AssertCurrent = both(req.AssertCurrent, guard)
	reg, key, err := w.opts.Registry.lookup(dir)
	switch {
	case err != nil:
		req.Provider = func(context.Context, attachments.TurnFiles) (attachments.Note, error) {
			return attachments.Note{}, err
		}
	case reg == nil:
		req.AssertCurrent = both(func() error { return w.opts.Registry.unbound(key) }, req.AssertCurrent)
	default:
		req.Provider = reg.access.PrepareTurnAttachments
		req.AssertCurrent = both(func() error { return w.opts.Registry.holds(key, reg) }, req.AssertCurrent)
	}
	note, err := attachments.PrepareForWorkspace(ctx, req)
	return note, op.fail(err)
}
