package skills

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// hashTime bounds the hashing of one discovery: a file can grow faster than it is hashed.
const hashTime = time.Minute

// hashing is the hashing of the resources of all candidates.
type hashing struct {
	jobs []hashJob
	// sums are the hashes of each candidate's resources, in order.
	sums [][]fsbridge.Digest
	// over are how many files were beyond the limit, late how many beyond the time.
	over, late int
}

// hashJob is one file, and where its hash goes.
type hashJob struct {
	path string
	to   *fsbridge.Digest
}

// toHash decides what is hashed, as far as the limit of bytes goes.
func toHash(b fsbridge.Bridge, list []candidate, opts Options, limits Limits) *hashing {
	h := &hashing{sums: make([][]fsbridge.Digest, len(list))}
	if opts.NoHashes || !fsbridge.Has(b, fsbridge.CapHashFile) {
		return h
	}
	left := limits.HashBytes
	for i, c := range list[:min(len(list), limits.Skills)] {
		if c.Rejected() {
			continue
		}
		h.sums[i] = make([]fsbridge.Digest, len(c.Resources))
		for j, r := range c.Resources {
			if r.Size > left {
				h.over++
				continue
			}
			left -= r.Size
			h.jobs = append(h.jobs, hashJob{path.Join(c.Dir, r.Path), &h.sums[i][j]})
		}
	}
	return h
}

// run hashes on the machine of the bridge.
func (h *hashing) run(ctx context.Context, b fsbridge.Bridge, opts Options) error {
	brief, cancel := context.WithTimeoutCause(ctx, hashTime, errHashTime)
	defer cancel()
	err := each(brief, len(h.jobs), opts.parallel(), func(i int) error {
		sum, err := fsbridge.HashFile(brief, b, h.jobs[i].path)
		if err != nil && !aboutFile(err) {
			return err
		}
		*h.jobs[i].to = sum.Digest // none when it went away meanwhile
		return nil
	})
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(brief), errHashTime) {
		return err
	}
	for _, j := range h.jobs {
		if *j.to == "" {
			h.late++
		}
	}
	return nil
}

var errHashTime = errors.New("the time for hashing is over")

// fill puts the hashes where they belong and says which are missing.
func (h *hashing) fill(list []candidate, limits Limits) (notices []Fault) {
	for i, sums := range h.sums {
		for j, d := range sums {
			list[i].Resources[j].Digest = d
		}
	}
	if h.over > 0 {
		notices = append(notices, Fault{Path: ".", Severity: SeverityWarning, Rule: RuleLimit, Text: fmt.Sprintf("%d files of skills are not hashed: together they have more than %d bytes", h.over, limits.HashBytes), Fix: "move what the agent does not need out of the skills' folders, or raise the limit"})
	}
	if h.late > 0 {
		notices = append(notices, Fault{Path: ".", Severity: SeverityWarning, Rule: RuleLimit, Text: fmt.Sprintf("%d files of skills are not hashed: it took more than %v", h.late, hashTime), Fix: "search again when nothing changes there"})
	}
	return notices
}
