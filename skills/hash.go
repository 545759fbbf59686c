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

// hashResult are the hashes of the resources of all candidates, in order.
type hashResult struct {
	sums [][]fsbridge.Digest
	// over are how many files were beyond the limit, late how many beyond the time.
	over, late int
	err        error
}

// hashAll hashes the resources of the candidates on their machine, as far as the limit of bytes goes.
func hashAll(ctx context.Context, b fsbridge.Bridge, list []candidate, opts Options, limits Limits) hashResult {
	r := hashResult{sums: make([][]fsbridge.Digest, len(list))}
	if opts.NoHashes || !fsbridge.Has(b, fsbridge.CapHashFile) {
		return r
	}
	type job struct {
		path string
		to   *fsbridge.Digest
	}
	var jobs []job
	left := limits.HashBytes
	for i, c := range list[:min(len(list), limits.Skills)] {
		if c.Rejected() {
			continue
		}
		r.sums[i] = make([]fsbridge.Digest, len(c.Resources))
		for j, res := range c.Resources {
			if res.Size > left {
				r.over++
				continue
			}
			left -= res.Size
			jobs = append(jobs, job{path.Join(c.Dir, res.Path), &r.sums[i][j]})
		}
	}
	brief, cancel := context.WithTimeoutCause(ctx, hashTime, errHashTime)
	defer cancel()
	r.err = each(brief, len(jobs), opts.parallel(), func(i int) error {
		h, err := fsbridge.HashFile(brief, b, jobs[i].path)
		if err != nil && !aboutFile(err) {
			return err
		}
		*jobs[i].to = h.Digest // none when it went away meanwhile
		return nil
	})
	if r.err != nil && ctx.Err() == nil && errors.Is(context.Cause(brief), errHashTime) {
		r.err = nil
		for _, j := range jobs {
			if *j.to == "" {
				r.late++
			}
		}
	}
	return r
}

var errHashTime = errors.New("the time for hashing is over")

// fill puts the hashes where they belong and says which are missing.
func (r hashResult) fill(list []candidate, limits Limits) (notices []Fault) {
	for i, sums := range r.sums {
		for j, d := range sums {
			list[i].Resources[j].Digest = d
		}
	}
	if r.over > 0 {
		notices = append(notices, Fault{Path: ".", Severity: SeverityWarning, Rule: RuleLimit, Text: fmt.Sprintf("%d files of skills are not hashed: together they have more than %d bytes", r.over, limits.HashBytes), Fix: "move what the agent does not need out of the skills' folders, or raise the limit"})
	}
	if r.late > 0 {
		notices = append(notices, Fault{Path: ".", Severity: SeverityWarning, Rule: RuleLimit, Text: fmt.Sprintf("%d files of skills are not hashed: it took more than %v", r.late, hashTime), Fix: "search again when nothing changes there"})
	}
	return notices
}
