// Package local is the file bridge over directories of this machine, seen from this process.
//
// It serves in two places: on the host, for an unconfined workspace, and inside a sandbox, where the
// guest helper answers with it for the sandbox's mounts. It declares every capability of the
// fsbridge package; without /proc the pinned read and the watch are missing, and it says so.
//
// Containment is the kernel's work: everything starts at directory handles that were opened once,
// see the package internal/rooted. This package adds what is policy:
//
//   - read-only and system mounts refuse changes before any effect, mount points are never renamed
//     or removed;
//   - the guard is called, and the context looked at, before each effect and before each chunk of a
//     stream;
//   - writes are atomic: the new content is complete before it gets its name;
//   - preconditions are checked while no other call of this bridge can change the file, and under an
//     advisory lock on the file that other bridges take as well;
//   - every read is bounded.
//
// # Temporary files
//
// A write prepares its file without a name where the file system can (O_TMPFILE), otherwise as
// ".berth-<tag>-<number>" beside the target. Such a name lives for microseconds when a file is
// replaced. After a crash [Bridge.Sweep] removes what carries the tag of the bridge that died, and
// nothing else. The bridge's listings leave out names of its own tag and hide nothing else.
//
// # What it must not know
//
// Sandboxes, transports, sessions: it gets a mount table and works on it. It imports the standard
// library, golang.org/x/sys and internal/rooted only.
//
// # What is not protected
//
// See the package fsbridge; it holds here without addition. In particular a process that writes to
// a file in place while it is read or hashed is seen in the middle of its work.
package local
