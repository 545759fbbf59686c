// Package rooted does file operations below a set of directory handles, so that no name, link or
// concurrent rename can lead out of them.
//
// A [Tree] opens the directory of every mount of a table once. From then on each operation starts
// at one of those handles: no absolute path string is ever trusted. There are two ways to resolve a
// name, and they give the same answers:
//
//   - The kernel's: openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS. One system call, about
//     3 µs at any depth. It refuses whatever might leave, honest absolute links included.
//   - The careful walk: one element at a time, O_PATH and O_NOFOLLOW, links expanded by us. An
//     absolute link continues at the mount that holds its target, ".." goes back to a directory that
//     was reached from the mount's handle, and what lies in no mount is refused. It takes over where
//     the kernel's way refuses, and does everything where openat2 is missing (old kernels, some seccomp
//     filters).
//
// What a resolution ends at is a [Handle] (O_PATH: opening it has no effect on FIFOs or devices) or
// a [Place]: the handle of a directory and one name in it, for the system calls that end in "at".
// A handle knows the mount it really lies in, which need not be the mount that the path named: a
// mount may lie inside another one. Where handles and the table disagree, handles win.
//
// # What it must not know
//
// Policy: read-only mounts, guards, limits, error texts and preconditions belong to the callers.
// This package answers "where is it" and gives the steps (temporary files, directory reading, deep
// descents in a bounded number of descriptors) that keep the answer true.
//
// # What is not protected
//
// A process that may rename a directory out of a mount while an operation holds its handle takes
// the operation with it: it could have done the same to the files. Mounts made inside a root by
// someone with the right to make them are part of the root.
package rooted
