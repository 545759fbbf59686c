package skills

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/workberth/workberth/fsbridge"
)

// readBudget bounds the bytes of SKILL.md files that are held at a time.
const readBudget = 64 << 20

// pinnedReads is how many files of a workspace are read at a time by the call that tells their location
// and has no bound of ours.
const pinnedReads = 16

// errChanged: the file is not what was found.
var errChanged = errors.New("it has changed since it was found")

// read reads and parses the candidates, all at once.
func read(ctx context.Context, b fsbridge.Bridge, list []candidate, opts Options, limits Limits) error {
	left := newBudget(max(readBudget, limits.FileBytes))
	var wanted []*candidate
	for i := range list {
		c := &list[i]
		if i >= limits.Skills {
			c.fault(SeverityError, 0, RuleLimit, fmt.Sprintf("more than %d skills; this one is not read", limits.Skills), "remove some, or raise the limit")
		}
		if !c.Rejected() {
			wanted = append(wanted, c)
		}
	}
	// Many texts are waited for at a time, and few of them parsed.
	parsers := make(chan struct{}, runtime.GOMAXPROCS(0))
	pinned := make(chan struct{}, pinnedReads)
	return each(ctx, len(wanted), opts.parallel(), func(i int) error {
		c := wanted[i]
		left.take(c.info.Size)
		defer left.give(c.info.Size)
		data, err := c.content(ctx, b, pinned)
		switch {
		case err == nil && int64(len(data)) > limits.FileBytes, errors.Is(err, fsbridge.ErrTooLarge):
			c.tooLarge(max(c.info.Size, int64(len(data))), limits.FileBytes)
		case errors.Is(err, errChanged):
			c.fault(SeverityError, 0, RuleReadable, err.Error(), "search again")
		case err == nil:
			parsers <- struct{}{}
			c.parse(data)
			<-parsers
		case aboutFile(err):
			c.fault(SeverityError, 0, RuleReadable, "it cannot be read: "+reason(err).Error(), "see its owner and mode")
		default:
			return err
		}
		return nil
	})
}

// content reads the file. In a workspace no more than was found is read, since its processes may make
// it grow meanwhile; where it lies is asked for if a link leads to it. Elsewhere, where the bridge can,
// bytes and location come from one open file.
func (c *candidate) content(ctx context.Context, b fsbridge.Bridge, pinned chan struct{}) ([]byte, error) {
	hostile := c.Kind != KindInstalled && c.Kind != KindBundled
	switch source := fsbridge.Has(b, fsbridge.CapReadFileWithSource); {
	case hostile && !(c.linked && source) && fsbridge.Has(b, fsbridge.CapReadRange):
		data, err := fsbridge.ReadRange(ctx, b, c.File, 0, c.info.Size+1)
		if err == nil && int64(len(data)) > c.info.Size {
			return nil, errChanged
		}
		return data, err
	case source:
		if hostile {
			pinned <- struct{}{}
			defer func() { <-pinned }()
		}
		f, err := fsbridge.ReadFileWithSource(ctx, b, c.File)
		c.RealFile = f.ResolvedPath
		return f.Data, err
	}
	return b.ReadFile(ctx, c.File)
}
