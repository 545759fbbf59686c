package skills

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// Discover finds the skills below the roots, through one bridge, and asks the prober what the
// machine has for their requirements. Roots are given by precedence, strongest first.
//
// What is wrong with a file is a fault of its skill or a notice. The error says that the machine
// cannot be reached, that the authority to ask is gone, that a needed root is not there, or that
// the bridge lacks what is needed: then nothing is returned. Nil asks no prober.
//
// A hostile tree costs bounded time and memory: see [Limits]. What is beyond them is told.
//
// Over a link with delay it costs a round trip for walking, one for reading and one for the
// prober, and two more where links have to be followed, however many skills there are. Keeps
// SKL-02, SKL-04, SKL-08.
func Discover(ctx context.Context, b fsbridge.Bridge, roots []Root, p Prober, opts Options) (Discovery, error) {
	if !fsbridge.Has(b, fsbridge.CapWalk) && !fsbridge.Has(b, fsbridge.CapReadDirectory) {
		return Discovery{}, &fsbridge.PathError{
			Op: "search for skills in", Path: ".", Err: &fsbridge.UnsupportedError{Capability: fsbridge.CapWalk},
			Hint: "choose a backend whose bridge declares it, see docs/capabilities.md",
		}
	}
	limits := opts.Limits.orDefaults()
	trees := make([]*tree, len(roots))
	there := make([]bool, len(roots))
	err := each(ctx, len(roots), opts.parallel(), func(i int) (err error) {
		trees[i] = &tree{b: b, root: roots[i], opts: opts, limits: limits}
		there[i], err = trees[i].grow(ctx)
		return err
	})
	if err != nil {
		return Discovery{}, err
	}
	var d Discovery
	var list []candidate
	for i, t := range trees {
		if there[i] {
			d.Roots = append(d.Roots, t.root)
			list = append(list, t.find()...)
		}
		d.Notices = append(d.Notices, t.notices...)
	}
	// Texts and hashes are asked for at the same time.
	sums, hashed := toHash(b, list, opts, limits), make(chan error, 1)
	hashing, stop := context.WithCancel(ctx)
	defer stop()
	go func() { hashed <- sums.run(hashing, b, opts) }()
	if err = read(ctx, b, list, opts, limits); err != nil {
		stop()
	}
	if err = cmp.Or(err, <-hashed); err != nil {
		return Discovery{}, err
	}
	d.Notices = append(d.Notices, sums.fill(list, limits)...)
	d.Skills = make([]Skill, len(list))
	for i := range list {
		d.Skills[i] = list[i].Skill
	}
	if p != nil {
		if d.Facts, err = p.Probe(ctx, needs(d.Skills, opts.Ask)); err != nil {
			return Discovery{}, fmt.Errorf("ask the machine that has the skills for its programs: %w", err)
		}
	}
	return d, nil
}

// Body is the text of a skill after its frontmatter, from the content of its SKILL.md, with line
// feeds only. Without a frontmatter it is empty.
func Body(data []byte) string {
	b, f := frontmatter(data)
	if f != nil {
		return ""
	}
	return strings.Join(strings.Split(lineFeeds(string(data)), "\n")[b.body-1:], "\n")
}
