package wire

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"

	"github.com/workberth/workberth/fsbridge"
)

// Feature names something a server offers beside files.
type Feature string

// The features.
const (
	// FeatureExec: the server runs commands.
	FeatureExec Feature = "exec"
	// FeatureSweep: the server ends what an earlier session left running.
	FeatureSweep Feature = "sweep"
	// FeatureCall: the server answers control calls.
	FeatureCall Feature = "call"
)

// Hello is what a side says of itself, once. A client fills Protocol, Build and
// Pid only.
type Hello struct {
	// Protocol is the version of the protocol.
	Protocol int
	// Build is the version of the program.
	Build string
	// Pid is the process id, as the process itself sees it.
	Pid int
	// Tag names the session the server was started for; it may be empty.
	Tag string
	// Features are what the server offers beside files.
	Features []Feature
	// Capabilities are what the server's bridge declares.
	Capabilities []fsbridge.Capability
	// Mounts is the server's mount table, without places on a host. Nil where
	// its bridge does not tell.
	Mounts fsbridge.MountTable
}

// Has reports whether the server offers f.
func (h Hello) Has(f Feature) bool { return slices.Contains(h.Features, f) }

var mountKinds = []fsbridge.MountKind{
	fsbridge.MountWorkspace, fsbridge.MountBind, fsbridge.MountTmpfs, fsbridge.MountSystem,
}

// Append appends the message.
func (h Hello) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(h.Protocol))
	b = AppendString(b, clip(h.Build, MaxWord))
	b = binary.AppendUvarint(b, uint64(h.Pid))
	b = AppendString(b, clip(h.Tag, MaxWord))
	b = binary.AppendUvarint(b, uint64(len(h.Features)))
	for _, f := range h.Features {
		b = AppendString(b, string(f))
	}
	b = binary.AppendUvarint(b, uint64(len(h.Capabilities)))
	for _, c := range h.Capabilities {
		b = AppendString(b, string(c))
	}
	b = binary.AppendUvarint(b, uint64(len(h.Mounts)))
	for _, m := range h.Mounts {
		b = AppendString(b, m.Path)
		b = appendEnum(b, mountKinds, m.Kind)
		b = AppendBool(b, m.ReadOnly)
	}
	return b
}

// DecodeHello decodes and checks a hello. The first two fields keep their place
// in every version of the protocol; where the version is another one, they are
// all that is decoded, and that is no error here.
func DecodeHello(payload []byte) (Hello, error) {
	d := NewDecoder(payload)
	h := Hello{Protocol: int(d.Upto(1 << 30)), Build: d.String(MaxWord)}
	if d.Err() != nil || h.Protocol != Version {
		return h, d.Err()
	}
	h.Pid = int(d.Upto(1 << 31))
	h.Tag = d.String(MaxWord)
	for range d.Count(MaxList, 1) {
		h.Features = append(h.Features, Feature(d.String(MaxWord)))
	}
	for range d.Count(MaxList, 1) {
		h.Capabilities = append(h.Capabilities, fsbridge.Capability(d.String(MaxWord)))
	}
	for range d.Count(MaxList, 3) {
		h.Mounts = append(h.Mounts, fsbridge.Mount{
			Path: d.String(MaxPath), Kind: takeEnum(d, "mount kind", mountKinds), ReadOnly: d.Bool(),
		})
	}
	if err := d.Finish(); err != nil {
		return Hello{}, err
	}
	if err := CheckMounts(h.Mounts); err != nil {
		return Hello{}, err
	}
	return h, nil
}

// CheckMounts refuses a mount table that cannot be one: paths that are not
// absolute and clean, one path twice, two workspaces.
func CheckMounts(t fsbridge.MountTable) error {
	seen := make(map[string]bool, len(t))
	workspaces := 0
	for _, m := range t {
		if err := fsbridge.ValidPath(m.Path); err != nil || !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path {
			return Violation("mount at %q", Printable(m.Path, MaxQuote))
		}
		if seen[m.Path] {
			return Violation("two mounts at %q", Printable(m.Path, MaxQuote))
		}
		seen[m.Path] = true
		if m.Kind == fsbridge.MountWorkspace {
			workspaces++
		}
	}
	if workspaces > 1 {
		return Violation("%d workspace mounts", workspaces)
	}
	return nil
}

// VersionError says that the two programs speak different versions of the
// protocol. Both are named, whichever side found out.
type VersionError struct {
	// Host is the side that calls, Guest the side that serves.
	Host, Guest Peer
}

// Peer names the version of one side.
type Peer struct {
	Protocol int
	Build    string
}

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the helper speaks protocol %d (build %q), this program protocol %d (build %q): "+
		"use a helper of the same release", e.Guest.Protocol, Printable(e.Guest.Build, MaxWord),
		e.Host.Protocol, Printable(e.Host.Build, MaxWord))
}

// clip shortens what a program says of itself to the bound its peer enforces.
func clip(s string, limit int) string {
	if len(s) > limit {
		return s[:limit]
	}
	return s
}
