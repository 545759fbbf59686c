package wire

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

var fileTypes = []fsbridge.FileType{
	fsbridge.TypeRegular, fsbridge.TypeDir, fsbridge.TypeSymlink, fsbridge.TypeFIFO,
	fsbridge.TypeSocket, fsbridge.TypeChar, fsbridge.TypeBlock, fsbridge.TypeUnknown,
}

// AppendInfo appends a FileInfo.
func AppendInfo(b []byte, i fsbridge.FileInfo) []byte {
	b = AppendString(b, i.Name)
	b = appendEnum(b, fileTypes, i.Type)
	b = binary.AppendUvarint(b, uint64(i.Mode&fsbridge.ModeAll))
	b = binary.AppendUvarint(b, uint64(max(i.Size, 0)))
	b = AppendTime(b, i.ModTime)
	b = binary.AppendUvarint(b, uint64(i.UID))
	b = binary.AppendUvarint(b, uint64(i.GID))
	b = binary.AppendUvarint(b, i.Nlink)
	b = binary.AppendUvarint(b, i.Dev)
	return binary.AppendUvarint(b, i.Inode)
}

// Info takes a FileInfo. Its name is one path element, or "/" or a name made of
// dots where the path asked for ended so; a separator inside is a violation.
func (d *Decoder) Info() fsbridge.FileInfo {
	i := fsbridge.FileInfo{
		Name:    d.String(MaxName),
		Type:    takeEnum(d, "file type", fileTypes),
		Mode:    fsbridge.Mode(d.Upto(uint64(fsbridge.ModeAll))),
		Size:    d.Size(),
		ModTime: d.Time(),
		UID:     d.Uint32(),
		GID:     d.Uint32(),
		Nlink:   d.Upto(math.MaxUint64),
		Dev:     d.Upto(math.MaxUint64),
		Inode:   d.Upto(math.MaxUint64),
	}
	if i.Name != "/" && hasSeparator(i.Name) {
		d.fail("file name %q", Printable(i.Name, MaxQuote))
	}
	if d.err != nil {
		return fsbridge.FileInfo{}
	}
	return i
}

// hasSeparator reports whether s has a byte that no name can have. It is faster
// than strings.ContainsAny, and called for every entry.
func hasSeparator(s string) bool {
	return strings.IndexByte(s, '/') >= 0 || strings.IndexByte(s, 0) >= 0
}

// CheckName refuses what cannot be the name of a directory entry: nothing, ".",
// "..", separators, NUL bytes, more than MaxName bytes.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > MaxName || hasSeparator(name) {
		return Violation("name of a directory entry %q", Printable(name, MaxQuote))
	}
	return nil
}

// CheckRelative refuses what cannot be a path below a directory: absolute,
// unclean, with ".." or a NUL byte, or too long. "." is the directory itself.
func CheckRelative(p string) error {
	bad := p == "" || len(p) > MaxPath
	if p != "." {
		for rest, more := p, true; more && !bad; {
			var e string
			e, rest, more = strings.Cut(rest, "/")
			bad = CheckName(e) != nil
		}
	}
	if bad {
		return Violation("path below a directory %q", Printable(p, MaxQuote))
	}
	return nil
}

// CheckAbsolute refuses what cannot be a resolved path: relative, unclean, with a
// NUL byte, or too long.
func CheckAbsolute(p string) error {
	if p == "/" {
		return nil
	}
	rest, ok := strings.CutPrefix(p, "/")
	if !ok || rest == "." || CheckRelative(rest) != nil {
		return Violation("resolved path %q", Printable(p, MaxQuote))
	}
	return nil
}

// AppendDirEntry appends an entry of a directory. The name is sent once.
func AppendDirEntry(b []byte, e fsbridge.DirEntry) []byte {
	e.Info.Name = e.Name
	b = AppendInfo(b, e.Info)
	return AppendString(b, e.LinkTarget)
}

// DirEntry takes an entry of a directory and checks its name.
func (d *Decoder) DirEntry() fsbridge.DirEntry {
	e := fsbridge.DirEntry{Info: d.Info(), LinkTarget: d.String(MaxPath)}
	e.Name = e.Info.Name
	if d.err == nil {
		d.check(CheckName(e.Name))
	}
	return e
}

// check turns a violation found in a decoded value into the decoder's error.
func (d *Decoder) check(err error) {
	if d.err == nil && err != nil {
		d.err, d.b = err, nil
	}
}

// AppendWalkEntry appends a step of a walk.
func AppendWalkEntry(b []byte, e fsbridge.WalkEntry) []byte {
	b = AppendString(b, e.Path)
	b = AppendInfo(b, e.Info)
	b = AppendString(b, string(e.Digest))
	b = AppendBool(b, e.Err != nil)
	if e.Err != nil {
		b = AppendError(b, e.Err)
	}
	return b
}

// WalkEntry takes a step of a walk and checks its path.
func (d *Decoder) WalkEntry() fsbridge.WalkEntry {
	e := fsbridge.WalkEntry{Path: d.String(MaxPath), Info: d.Info(), Digest: d.Digest()}
	if d.Bool() {
		e.Err = d.Error()
	}
	if d.err == nil {
		d.check(CheckRelative(e.Path))
	}
	return e
}

var eventKinds = []fsbridge.EventKind{
	fsbridge.EventCreate, fsbridge.EventWrite, fsbridge.EventRemove, fsbridge.EventAttrib, fsbridge.EventOverflow,
}

// AppendEvent appends a change below a watched directory.
func AppendEvent(b []byte, e fsbridge.Event) []byte {
	b = appendEnum(b, eventKinds, e.Kind)
	b = AppendString(b, e.Path)
	b = AppendBool(b, e.Dir)
	return AppendTime(b, e.Time)
}

// Event takes a change and checks its path; empty is the directory itself.
func (d *Decoder) Event() fsbridge.Event {
	e := fsbridge.Event{
		Kind: takeEnum(d, "event", eventKinds), Path: d.String(MaxPath), Dir: d.Bool(), Time: d.Time(),
	}
	if d.err == nil && e.Path != "" {
		d.check(CheckRelative(e.Path))
	}
	return e
}

// Digest takes a digest: empty, or 64 hexadecimal digits in lower case.
func (d *Decoder) Digest() fsbridge.Digest {
	s := d.String(64)
	if s == "" {
		return ""
	}
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		d.fail("digest %q", Printable(s, MaxQuote))
		return ""
	}
	return fsbridge.Digest(s)
}

// AppendHash appends the result of hashing.
func AppendHash(b []byte, h fsbridge.FileHash) []byte {
	b = AppendString(b, string(h.Digest))
	return binary.AppendUvarint(b, uint64(max(h.Size, 0)))
}

// Hash takes the result of hashing.
func (d *Decoder) Hash() fsbridge.FileHash {
	return fsbridge.FileHash{Digest: d.Digest(), Size: d.Size()}
}

// AppendWriteResult appends the result of a write.
func AppendWriteResult(b []byte, r fsbridge.WriteResult) []byte {
	return AppendBool(AppendHash(b, r.FileHash), r.Created)
}

// WriteResult takes the result of a write.
func (d *Decoder) WriteResult() fsbridge.WriteResult {
	return fsbridge.WriteResult{FileHash: d.Hash(), Created: d.Bool()}
}

// Source is what comes before the content of a pinned read.
type Source struct {
	// Resolved is the canonical absolute path in the environment.
	Resolved string
	// Relative is Resolved below the workspace mount, or empty.
	Relative string
	Info     fsbridge.FileInfo
	// Size is the number of bytes of content, which were read before.
	Size int64
}

// AppendSource appends a Source.
func AppendSource(b []byte, s Source) []byte {
	b = AppendString(b, s.Resolved)
	b = AppendString(b, s.Relative)
	b = AppendInfo(b, s.Info)
	return binary.AppendUvarint(b, uint64(max(s.Size, 0)))
}

// Source takes a Source and checks the form of its paths.
func (d *Decoder) Source() Source {
	s := Source{Resolved: d.String(MaxPath), Relative: d.String(MaxPath), Info: d.Info(), Size: d.Size()}
	if d.err == nil {
		d.check(CheckAbsolute(s.Resolved))
	}
	if d.err == nil && s.Relative != "" {
		d.check(CheckRelative(s.Relative))
	}
	return s
}
