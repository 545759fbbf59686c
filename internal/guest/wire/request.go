package wire

import (
	"encoding/binary"

	"github.com/workberth/workberth/fsbridge"
)

// PathRequest asks about one path.
type PathRequest struct{ Path string }

// Append appends the request.
func (r PathRequest) Append(b []byte) []byte { return AppendString(b, r.Path) }

// PathRequest takes the request.
func (d *Decoder) PathRequest() PathRequest { return PathRequest{d.String(MaxPath)} }

// ReadRequest asks for content. At most Limit bytes are wanted (zero: as the
// server likes); Window is the credit of ChannelOut.
type ReadRequest struct {
	Path   string
	Limit  int64
	Window int
}

// Append appends the request.
func (r ReadRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Path)
	b = binary.AppendUvarint(b, uint64(r.Limit))
	return binary.AppendUvarint(b, uint64(r.Window))
}

// ReadRequest takes the request.
func (d *Decoder) ReadRequest() ReadRequest {
	return ReadRequest{d.String(MaxPath), d.Size(), d.window()}
}

func (d *Decoder) window() int { return int(d.Upto(MaxWindow)) }

// RangeRequest asks for N bytes of content from Off.
type RangeRequest struct {
	Path   string
	Off, N int64
	Window int
}

// Append appends the request.
func (r RangeRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Path)
	b = binary.AppendVarint(b, r.Off)
	b = binary.AppendVarint(b, r.N)
	return binary.AppendUvarint(b, uint64(r.Window))
}

// RangeRequest takes the request.
func (d *Decoder) RangeRequest() RangeRequest {
	return RangeRequest{d.String(MaxPath), d.Varint(), d.Varint(), d.window()}
}

// WriteRequest replaces a file. Data is the beginning of the content, or with
// Last all of it.
type WriteRequest struct {
	Path string
	// Plain asks for Bridge.WriteFile, whose result is empty; then Options.Size
	// is the only option, and a hint.
	Plain   bool
	Options fsbridge.WriteOptions
	Last    bool
	Data    []byte
}

// Append appends the request without its Data, which goes behind it.
func (r WriteRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Path)
	b = AppendBool(b, r.Plain)
	o := r.Options
	b = binary.AppendUvarint(b, uint64(o.Mode))
	b = AppendBool(b, o.AllowSetID)
	b = appendPrecondition(b, o.If)
	b = AppendBool(b, o.NoParents)
	b = AppendBool(b, o.Sync)
	b = binary.AppendVarint(b, o.Size)
	return AppendBool(b, r.Last)
}

// WriteRequest takes the request. Data aliases the payload.
func (d *Decoder) WriteRequest() WriteRequest {
	return WriteRequest{
		Path: d.String(MaxPath), Plain: d.Bool(),
		Options: fsbridge.WriteOptions{
			Mode: fsbridge.Mode(d.Uint32()), AllowSetID: d.Bool(), If: d.precondition(),
			NoParents: d.Bool(), Sync: d.Bool(), Size: d.Varint(),
		},
		Last: d.Bool(), Data: d.Rest(),
	}
}

func appendPrecondition(b []byte, p fsbridge.Precondition) []byte {
	return AppendBool(AppendString(b, string(p.Hash)), p.Absent)
}

// A precondition's digest is whatever the caller demanded; the bridge judges it.
func (d *Decoder) precondition() fsbridge.Precondition {
	return fsbridge.Precondition{Hash: fsbridge.Digest(d.String(MaxWord)), Absent: d.Bool()}
}

// ContentRequest creates or extends a file. Data is the beginning of the content,
// or with Last all of it; Size is how much it will be.
type ContentRequest struct {
	Path string
	Size int64
	Last bool
	Data []byte
}

// Append appends the request without its Data, which goes behind it.
func (r ContentRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Path)
	b = binary.AppendUvarint(b, uint64(r.Size))
	return AppendBool(b, r.Last)
}

// ContentRequest takes the request. Data aliases the payload.
func (d *Decoder) ContentRequest() ContentRequest {
	return ContentRequest{d.String(MaxPath), d.Size(), d.Bool(), d.Rest()}
}

// MkdirRequest makes a directory.
type MkdirRequest struct {
	Path    string
	Options fsbridge.MkdirOptions
}

// Append appends the request.
func (r MkdirRequest) Append(b []byte) []byte {
	b = AppendBool(AppendString(b, r.Path), r.Options.Parents)
	return binary.AppendUvarint(b, uint64(r.Options.Mode))
}

// MkdirRequest takes the request.
func (d *Decoder) MkdirRequest() MkdirRequest {
	return MkdirRequest{d.String(MaxPath), fsbridge.MkdirOptions{Parents: d.Bool(), Mode: fsbridge.Mode(d.Uint32())}}
}

// RemoveRequest removes a file or directory.
type RemoveRequest struct {
	Path    string
	Options fsbridge.RemoveOptions
}

// Append appends the request.
func (r RemoveRequest) Append(b []byte) []byte {
	b = AppendBool(AppendString(b, r.Path), r.Options.Recursive)
	b = appendPrecondition(b, r.Options.If)
	return AppendBool(b, r.Options.IgnoreMissing)
}

// RemoveRequest takes the request.
func (d *Decoder) RemoveRequest() RemoveRequest {
	return RemoveRequest{d.String(MaxPath), fsbridge.RemoveOptions{
		Recursive: d.Bool(), If: d.precondition(), IgnoreMissing: d.Bool(),
	}}
}

// RenameRequest renames a file or directory.
type RenameRequest struct {
	Old, New string
	Options  fsbridge.RenameOptions
}

// Append appends the request.
func (r RenameRequest) Append(b []byte) []byte {
	b = AppendString(AppendString(b, r.Old), r.New)
	return AppendBool(AppendBool(b, r.Options.NoReplace), r.Options.Parents)
}

// RenameRequest takes the request.
func (d *Decoder) RenameRequest() RenameRequest {
	return RenameRequest{
		d.String(MaxPath), d.String(MaxPath),
		fsbridge.RenameOptions{NoReplace: d.Bool(), Parents: d.Bool()},
	}
}

// CopyRequest copies a file or directory.
type CopyRequest struct {
	Src, Dst string
	Options  fsbridge.CopyOptions
}

// Append appends the request.
func (r CopyRequest) Append(b []byte) []byte {
	b = AppendString(AppendString(b, r.Src), r.Dst)
	return AppendBool(AppendBool(b, r.Options.Recursive), r.Options.NoReplace)
}

// CopyRequest takes the request.
func (d *Decoder) CopyRequest() CopyRequest {
	return CopyRequest{
		d.String(MaxPath), d.String(MaxPath),
		fsbridge.CopyOptions{Recursive: d.Bool(), NoReplace: d.Bool()},
	}
}

// SymlinkRequest makes a symbolic link.
type SymlinkRequest struct {
	Target, Path string
	Options      fsbridge.SymlinkOptions
}

// Append appends the request.
func (r SymlinkRequest) Append(b []byte) []byte {
	return AppendBool(AppendString(AppendString(b, r.Target), r.Path), r.Options.Replace)
}

// SymlinkRequest takes the request.
func (d *Decoder) SymlinkRequest() SymlinkRequest {
	return SymlinkRequest{d.String(MaxPath), d.String(MaxPath), fsbridge.SymlinkOptions{Replace: d.Bool()}}
}

// ChmodRequest changes permissions.
type ChmodRequest struct {
	Path string
	Mode fsbridge.Mode
}

// Append appends the request.
func (r ChmodRequest) Append(b []byte) []byte {
	return binary.AppendUvarint(AppendString(b, r.Path), uint64(r.Mode))
}

// ChmodRequest takes the request.
func (d *Decoder) ChmodRequest() ChmodRequest {
	return ChmodRequest{d.String(MaxPath), fsbridge.Mode(d.Uint32())}
}

// ListRequest lists a directory.
type ListRequest struct {
	Path   string
	Window int
}

// Append appends the request.
func (r ListRequest) Append(b []byte) []byte {
	return binary.AppendUvarint(AppendString(b, r.Path), uint64(r.Window))
}

// ListRequest takes the request.
func (d *Decoder) ListRequest() ListRequest { return ListRequest{d.String(MaxPath), d.window()} }

// WalkRequest walks a tree.
type WalkRequest struct {
	Path    string
	Options fsbridge.WalkOptions
	Window  int
}

// Append appends the request.
func (r WalkRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Path)
	b = binary.AppendVarint(b, int64(r.Options.MaxDepth))
	b = binary.AppendVarint(b, int64(r.Options.MaxEntries))
	b = AppendBool(b, r.Options.Hash)
	b = AppendStrings(b, r.Options.SkipDirs)
	return binary.AppendUvarint(b, uint64(r.Window))
}

// WalkRequest takes the request.
func (d *Decoder) WalkRequest() WalkRequest {
	return WalkRequest{
		Path: d.String(MaxPath),
		Options: fsbridge.WalkOptions{
			MaxDepth: d.Int(), MaxEntries: d.Int(),
			Hash: d.Bool(), SkipDirs: d.Strings(MaxList, MaxName),
		},
		Window: d.window(),
	}
}

// GlobRequest expands a pattern.
type GlobRequest struct {
	Pattern string
	Options fsbridge.GlobOptions
	Window  int
}

// Append appends the request.
func (r GlobRequest) Append(b []byte) []byte {
	b = binary.AppendVarint(AppendString(b, r.Pattern), int64(r.Options.MaxMatches))
	return binary.AppendUvarint(b, uint64(r.Window))
}

// GlobRequest takes the request.
func (d *Decoder) GlobRequest() GlobRequest {
	return GlobRequest{d.String(MaxPath), fsbridge.GlobOptions{MaxMatches: d.Int()}, d.window()}
}

// WatchRequest watches a directory.
type WatchRequest struct {
	Path    string
	Options fsbridge.WatchOptions
	Window  int
}

// Append appends the request.
func (r WatchRequest) Append(b []byte) []byte {
	b = AppendBool(AppendString(b, r.Path), r.Options.Recursive)
	b = binary.AppendVarint(b, int64(r.Options.MaxDirs))
	return binary.AppendUvarint(b, uint64(r.Window))
}

// WatchRequest takes the request.
func (d *Decoder) WatchRequest() WatchRequest {
	return WatchRequest{
		d.String(MaxPath),
		fsbridge.WatchOptions{Recursive: d.Bool(), MaxDirs: d.Int()},
		d.window(),
	}
}
