package helperbin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// sumSuffix ends the name of the file that holds the SHA-256 of an embedded helper, so that it
// need not be computed at every start.
const sumSuffix = ".sha256"

// readEmbedded returns the helper for t and its recorded SHA-256. It returns an error matching
// fs.ErrNotExist when there is none. Content and sum come from one build; that they fit is checked
// by the tests of a release build and cannot change afterwards.
func readEmbedded(files fs.FS, t target) (content []byte, sum string, err error) {
	if content, err = fs.ReadFile(files, t.suffixed()); err != nil {
		return nil, "", err
	}
	recorded, err := fs.ReadFile(files, t.suffixed()+sumSuffix)
	if err != nil {
		return nil, "", fmt.Errorf("this program was built wrongly, use `make release`: %w", noSumError{err})
	}
	sum = strings.TrimSpace(string(recorded))
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum) {
		return nil, "", fmt.Errorf("this program was built wrongly, use `make release`: %s holds %q, not a SHA-256", t.suffixed()+sumSuffix, sum)
	}
	return content, sum, nil
}

// noSumError hides fs.ErrNotExist, which would read as "no helper embedded".
type noSumError struct{ err error }

func (e noSumError) Error() string { return e.err.Error() }
