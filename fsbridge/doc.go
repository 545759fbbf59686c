// Package fsbridge is the vocabulary of file access inside an execution
// environment: a sandbox, a machine reached over SSH, or a local folder.
//
// Host code never opens the environment's files itself. It asks a [Bridge],
// and the bridge stays inside the mounts its environment permits.
//
// # Core and capabilities
//
// [Bridge] has three methods: Stat, ReadFile and WriteFile. Everything else is
// a capability: an interface of one method, asked for with the package function
// of the same name ([Lstat], [ReadRange], [Rename], ...). Where a bridge lacks a
// capability, that function returns a [*PathError] that names it and matches
// [ErrUnsupported]; nothing is substituted. [CapabilitiesOf] lists what a bridge
// declares. A wrapper must forward every capability of the bridge it wraps and
// no other.
//
// # Path names
//
// Paths are POSIX byte strings, not necessarily UTF-8. A relative path starts at
// the workspace root. An absolute path must lie in a mount of the bridge's
// [MountTable]. An empty path, a path with a NUL byte and a path longer than
// [MaxPath] are refused before anything is sent. [DisplayPath] gives a reversible
// printable form for output that must be UTF-8.
//
// Symbolic links that stay inside the mounts are followed, absolute ones too.
// Links that leave are refused with [ErrOutsideRoot]. A mount of kind
// [MountSystem] (the files of the image) is reached only by an absolute path that
// names it, never through a link or ".." from another mount. Hard links are
// ordinary files. FIFOs, sockets and devices can be listed, renamed and removed,
// and are refused with [ErrNotRegular] when their content is asked for.
//
// # Writes
//
// Writes are atomic: a reader sees the old bytes or the new ones, never a
// mixture, and a failed write leaves the old file whole and no temporary file. A
// write through a link replaces the link's target; the link stays. Without a
// precondition the last writer wins; with one ([Precondition]) a lost update is
// an [*ConflictError] that carries the current hash.
//
// # Not protected
//
// A bridge does not protect against a process in the environment that changes a
// file's content while it is read through an open descriptor, against another
// writer between two calls without a precondition, or against bind mounts made
// inside the environment by a process with the right to make them.
package fsbridge
