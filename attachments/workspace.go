package attachments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
)

// InboundDir is where files are staged, relative to the workspace.
const InboundDir = "media/inbound"

// WorkspaceOptions direct NewWorkspacePreparer.
type WorkspaceOptions struct {
	// Store is where the bytes come from, and the only place. Needed. Keeps ATT-20.
	Store *mediastore.Store
	// CreateBridge makes the bridge to the workspace, once per call, over the host's own
	// backend, which the host has authorised. The bridge calls the guard it is given before
	// each command. One that implements io.Closer is closed after the call. Needed. Keeps
	// ATT-24, ATT-34.
	CreateBridge fsbridge.Factory
	// Limit is the configured media limit, in bytes; see LimitInForce.
	Limit int64
	// Timeout bounds one call, all files together. Zero means DefaultTimeout.
	Timeout time.Duration
	// Progress is told how far a transfer is, on the goroutine of the call. Nil: nobody is.
	Progress func(Progress)
	// Logger is told of transfers, for debugging. Nil discards.
	Logger *slog.Logger
}

// Progress tells how far a call is.
type Progress struct {
	// Index of the file, of Count that are staged.
	Index, Count int
	Fact         MediaFact
	// Sent bytes of Fact.Size.
	Sent int64
}

// WorkspacePreparer stages files in a workspace elsewhere. It is safe for concurrent use,
// by several preparers of one workspace too.
type WorkspacePreparer struct {
	opts WorkspaceOptions
	log  *slog.Logger
}

// NewWorkspacePreparer makes one (createWorkspaceAttachmentPreparer). Its Prepare is a
// Provider. Keeps ATT-19.
func NewWorkspacePreparer(opts WorkspaceOptions) (*WorkspacePreparer, error) {
	switch {
	case opts.Store == nil:
		return nil, fmt.Errorf("attachments: no media store: %w", ErrInvalid)
	case opts.CreateBridge == nil:
		return nil, fmt.Errorf("attachments: nothing makes a bridge: %w", ErrInvalid)
	case opts.Timeout < 0 || opts.Limit < 0:
		return nil, fmt.Errorf("attachments: timeout %v, limit %d: neither may be negative: %w", opts.Timeout, opts.Limit, ErrInvalid)
	}
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	p := &WorkspacePreparer{opts: opts, log: opts.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p, nil
}

// Prepare stages the files that have a copy in the media store, one after the other, and
// tells where they are:
//
//	media/inbound/<first 16 digits of the SHA-256>/<cleaned name>
//
// A file that is there already with the same content, proved by its hash, is not sent
// again. Nothing is ever replaced: where something else has the name, the file gets
// "name-2.ext" and so on. Sizes are checked before anything is sent. Content travels in
// constant memory where the bridge can write a stream, and is held in memory as a whole
// where it can only create files from bytes. A file without a copy is NotCovered.
//
// An error is a *BlockedError. A file that this call began and could not complete is removed
// again; the error says so where that failed. Complete files stay. Keeps ATT-15, ATT-19 to
// ATT-25.
func (p *WorkspacePreparer) Prepare(ctx context.Context, turn TurnFiles) (Note, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	note, name, err := p.prepare(ctx, turn)
	if err != nil {
		return Note{}, blocked(name, overtime(ctx, p.opts.Timeout, err))
	}
	return note, nil
}

// prepare also names the file an error is about.
func (p *WorkspacePreparer) prepare(ctx context.Context, turn TurnFiles) (Note, string, error) {
	c := &call{p: p, guard: guards(turn.AssertCurrent), seen: make(map[string]PreparedFile)}
	files := filesOf(turn.Files)
	if err := current(ctx, c.guard); err != nil || len(files) == 0 {
		return Note{}, "", err
	}
	covered := 0
	for _, f := range files {
		it, err := p.look(ctx, f)
		if err != nil {
			return Note{}, f.Name, err
		}
		if it.result.Outcome != NotCovered {
			covered++
		}
		c.items = append(c.items, it)
	}
	if covered > 0 {
		if err := c.connect(ctx); err != nil {
			return Note{}, "", err
		}
		defer c.close()
		if name, err := c.stageAll(ctx, covered); err != nil {
			return Note{}, name, err
		}
		if err := current(ctx, c.guard); err != nil {
			return Note{}, "", err
		}
	}
	results := make([]PreparedFile, 0, len(c.items))
	for _, it := range c.items {
		results = append(results, it.result)
	}
	return makeNote(results), "", nil
}

// item is one file of a call.
type item struct {
	ref    mediastore.Reference
	name   string // cleaned
	result PreparedFile
}

// look finds a file's copy and refuses one that is too large.
func (p *WorkspacePreparer) look(ctx context.Context, f MediaFact) (item, error) {
	uncovered := func(reason string) (item, error) {
		return item{result: PreparedFile{Fact: f, Outcome: NotCovered, Reason: reason}}, nil
	}
	if f.Ref == "" {
		return uncovered("the media store has no copy of it")
	}
	ref, err := p.opts.Store.Reference(ctx, f.Ref)
	if errors.Is(err, mediastore.ErrNoReference) {
		return uncovered("the media store has no copy of it any more")
	}
	if err != nil {
		return item{}, err
	}
	if limit := LimitInForce(p.opts.Limit); ref.Size > limit {
		return item{}, &fsbridge.LimitError{What: "file size", Limit: limit, Actual: ref.Size}
	}
	fact := FactOf(ref)
	fact.Path, fact.URL = f.Path, f.URL
	if f.Name != "" {
		fact.Name = f.Name
	}
	if f.Origin != "" {
		fact.Origin = f.Origin
	}
	return item{ref: ref, name: mediastore.CleanName(fact.Name), result: PreparedFile{Fact: fact}}, nil
}

// call is one Prepare.
type call struct {
	p      *WorkspacePreparer
	guard  fsbridge.AssertFunc
	items  []item
	bridge fsbridge.Bridge
	// seen has the result for each place in this call: identical files are staged once.
	seen map[string]PreparedFile
}

// connect makes the bridge and wants it to be able to create files exclusively. Keeps ATT-19.
func (c *call) connect(ctx context.Context) error {
	b, err := c.p.opts.CreateBridge(ctx, c.guard)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("no bridge was made: %w", ErrInvalid)
	}
	if !fsbridge.Has(b, fsbridge.CapCreateFileExclusive) {
		closeBridge(b)
		return &fsbridge.UnsupportedError{Capability: fsbridge.CapCreateFileExclusive}
	}
	c.bridge = b
	return nil
}

func (c *call) close() { closeBridge(c.bridge) }

func closeBridge(b fsbridge.Bridge) {
	if cl, ok := b.(io.Closer); ok {
		_ = cl.Close() // everything was answered already
	}
}

// stageAll stages one file after the other. It names the file an error is about.
func (c *call) stageAll(ctx context.Context, count int) (string, error) {
	index := 0
	for i := range c.items {
		it := &c.items[i]
		if it.result.Outcome == NotCovered {
			continue
		}
		place := string(it.ref.Digest) + "/" + it.name
		done, ok := c.seen[place]
		if !ok {
			s := staging{call: c, item: it, progress: Progress{Index: index, Count: count, Fact: it.result.Fact}}
			var err error
			if done, err = s.stage(ctx); err != nil {
				return it.result.Fact.Name, err
			}
			c.seen[place] = done
			c.p.log.Debug("attachment staged", "path", done.WorkspacePath, "outcome", done.Outcome, "size", it.ref.Size)
		} else {
			done.Outcome = Present
		}
		it.result.Outcome, it.result.Path, it.result.WorkspacePath = done.Outcome, done.Path, done.WorkspacePath
		index++
	}
	return "", nil
}

// inbound is the n-th path at which a file may be staged; the first is 1.
func inbound(d fsbridge.Digest, name string, n int) string {
	if n > 1 {
		suffix := fmt.Sprintf("-%d", n)
		ext := path.Ext(name)
		stem := strings.TrimSuffix(name, ext)
		if room := mediastore.MaxName - len(suffix) - len(ext); len(stem) > room {
			stem = strings.ToValidUTF8(stem[:room], "")
		}
		name = stem + suffix + ext
	}
	return InboundDir + "/" + string(d[:16]) + "/" + name
}
