package mediastore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// RefID names a reference: the first 16 hexadecimal digits of the content's hash, a dash,
// and random letters. It is safe in a file name and in a transcript.
type RefID string

var refPattern = regexp.MustCompile(`^[0-9a-f]{16}-[A-Z2-7]{26}$`)

// Valid reports whether id has the form of a reference's name.
func (id RefID) Valid() bool { return refPattern.MatchString(string(id)) }

// Facts are what is true of one arrival of a file and not of its content.
type Facts struct {
	// Name is what the sender called the file: any bytes, not to be used as a path.
	Name string
	// Origin says where it came from, in words of the host's own, such as
	// "telegram:4711". It may be empty.
	Origin string
}

// Reference is one arrival of a file.
type Reference struct {
	ID RefID
	Facts
	// Digest and Size are those of the content.
	Digest fsbridge.Digest
	Size   int64
	// Type is the media type found from the content, such as "application/pdf".
	Type string
	// Created is when it arrived.
	Created time.Time
}

// record is a reference on disk.
type record struct {
	Digest  fsbridge.Digest `json:"sha256"`
	Size    int64           `json:"size"`
	Type    string          `json:"type"`
	Name    string          `json:"name"`
	Bytes   []byte          `json:"nameBytes,omitempty"` // the name where it is not UTF-8
	Origin  string          `json:"origin,omitempty"`
	Created time.Time       `json:"created"`
}

// newName is a name nobody else has.
func newName() string { return rand.Text() }

// newReference names a new reference to a content.
func newReference(d fsbridge.Digest) RefID { return RefID(string(d[:16]) + "-" + rand.Text()) }

func (r Reference) encode() ([]byte, error) {
	rec := record{Digest: r.Digest, Size: r.Size, Type: r.Type, Name: r.Name, Origin: r.Origin, Created: r.Created.UTC()}
	if !utf8.ValidString(r.Name) {
		rec.Name, rec.Bytes = fsbridge.DisplayPath(r.Name), []byte(r.Name)
	}
	return json.Marshal(rec)
}

func decode(id RefID, data []byte) (Reference, error) {
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return Reference{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !validDigest(rec.Digest) || rec.Size < 0 || !strings.HasPrefix(string(id), string(rec.Digest[:16])) {
		return Reference{}, fmt.Errorf("%w: the reference does not name an object", ErrDamaged)
	}
	r := Reference{
		ID: id, Facts: Facts{Name: rec.Name, Origin: rec.Origin},
		Digest: rec.Digest, Size: rec.Size, Type: rec.Type, Created: rec.Created,
	}
	if rec.Bytes != nil {
		r.Name = string(rec.Bytes)
	}
	return r, nil
}

// validDigest reports whether d is a SHA-256 in lower-case hexadecimal.
func validDigest(d fsbridge.Digest) bool {
	return len(d) == 64 && strings.Trim(string(d), "0123456789abcdef") == ""
}

// Reference reads a reference. One that does not exist is ErrNoReference.
func (s *Store) Reference(ctx context.Context, id RefID) (Reference, error) {
	r, err := s.reference(ctx, id)
	return r, fail("look up attachment", string(id), err)
}

func (s *Store) reference(ctx context.Context, id RefID) (Reference, error) {
	if err := ctx.Err(); err != nil {
		return Reference{}, err
	}
	if !id.Valid() {
		return Reference{}, fmt.Errorf("%w: the name is malformed", ErrNoReference)
	}
	data, err := s.root.ReadFile(refsDir + "/" + string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Reference{}, ErrNoReference
	}
	if err != nil {
		return Reference{}, err
	}
	return decode(id, data)
}

// References lists all references, oldest first.
func (s *Store) References(ctx context.Context) ([]Reference, error) {
	ids, err := s.referenceIDs()
	if err != nil {
		return nil, fail("list attachments", "", err)
	}
	var list []Reference
	for _, id := range ids {
		r, err := s.reference(ctx, id)
		switch {
		case errors.Is(err, ErrNoReference): // released meanwhile
		case err != nil:
			return nil, fail("list attachments", string(id), err)
		default:
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Reference) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// referenceIDs lists the names of all references.
func (s *Store) referenceIDs() ([]RefID, error) {
	names, err := s.names(refsDir)
	if err != nil {
		return nil, err
	}
	var ids []RefID
	for _, n := range names {
		if id := RefID(n); id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// names lists a directory.
func (s *Store) names(dir string) ([]string, error) {
	d, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Release ends a reference. The content stays until a collection finds that no other
// reference names it. A reference that is gone already is no error.
func (s *Store) Release(ctx context.Context, id RefID) error {
	return fail("release attachment", string(id), s.release(ctx, id))
}

func (s *Store) release(ctx context.Context, id RefID) error {
	if !id.Valid() {
		return fmt.Errorf("%w: the name is malformed", ErrNoReference)
	}
	done, err := s.hold(ctx, false)
	if err != nil {
		return err
	}
	defer done()
	if err := s.root.Remove(refsDir + "/" + string(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.root.RemoveAll(viewsDir + "/" + string(id)); err != nil {
		return err
	}
	return s.syncDir(refsDir)
}
