package attachments

import (
	"context"
	"slices"

	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
)

// DefaultStagingLimit is the largest file that is staged where nothing higher is
// configured, in bytes: 50 MiB. Keeps ATT-22.
const DefaultStagingLimit = mediastore.DefaultLimit

// LimitInForce is the largest file that is taken and staged: the configured limit, where
// that is higher than DefaultStagingLimit. A lower one does not reduce it. Keeps ATT-22,
// ATT-23.
func LimitInForce(configured int64) int64 { return max(DefaultStagingLimit, configured) }

// MediaFact is what the host knows of one file that came with a message. It is a plain
// value: a copy is detached from its original.
type MediaFact struct {
	// Ref is the file's reference in the media store; empty when there is no copy.
	Ref mediastore.RefID
	// Name is what the sender called it, Origin where it came from. Untrusted bytes.
	Name, Origin string
	// Type, Size (bytes) and Digest as far as they are known; where there is a copy, its
	// reference is what counts.
	Type   string
	Size   int64
	Digest fsbridge.Digest
	// Path is where the file lies on the host's machine, URL where it can be fetched; either
	// may be empty.
	Path, URL string
}

// FactOf is the fact of a file in the media store.
func FactOf(r mediastore.Reference) MediaFact {
	return MediaFact{Ref: r.ID, Name: r.Name, Origin: r.Origin, Type: r.Type, Size: r.Size, Digest: r.Digest}
}

// HasFile reports whether there is a file behind the fact: a copy, a path or a URL. Only
// such facts can be prepared. Keeps ATT-27, ATT-31.
func (f MediaFact) HasFile() bool { return f.Ref != "" || f.Path != "" || f.URL != "" }

// filesOf leaves out facts without a file.
func filesOf(facts []MediaFact) []MediaFact {
	return slices.DeleteFunc(slices.Clone(facts), func(f MediaFact) bool { return !f.HasFile() })
}

// TurnFiles are the files of one input, in order.
type TurnFiles struct {
	Files []MediaFact
	// AssertCurrent is the guard of the turn. Nil means that nothing can end it but ctx.
	AssertCurrent fsbridge.AssertFunc
}

// Provider prepares files for the place a harness works in (prepareTurnAttachments). The
// note it returns names the files it has prepared; files it does not cover are left out of
// it and are no error. An error means that a preparation failed. Keeps ATT-15.
type Provider func(ctx context.Context, files TurnFiles) (Note, error)

// guards is an AssertFunc that wants all to hold; nil ones are left out.
func guards(list ...fsbridge.AssertFunc) fsbridge.AssertFunc {
	return func() error {
		for _, g := range list {
			if g == nil {
				continue
			}
			if err := g(); err != nil {
				return err
			}
		}
		return nil
	}
}

// current looks at ctx and the guard, as between any two steps.
func current(ctx context.Context, guard fsbridge.AssertFunc) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := guard(); err != nil {
		return notCurrent(err)
	}
	return nil
}
