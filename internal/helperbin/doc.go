// Package helperbin finds the guest helper program, berth-guest, on this machine.
//
// The helper is a static program that runs inside sandboxes and on remote hosts. This package
// hands out the path of a file that has been checked: it is a regular file, this user may execute
// it, and it is built for the wanted operating system and architecture. It looks, in this order:
//
//  1. at the path in the environment variable BERTH_GUEST;
//  2. inside the running program, when that was built by `make release` (build tag berth_embed),
//     which carries the helper for linux/amd64 and linux/arm64;
//  3. beside the running program: "berth-guest" for the machine's own architecture, otherwise
//     "berth-guest-<os>-<arch>".
//
// Nothing else is searched: not PATH, not the working directory, not the network. A helper that
// was named explicitly and cannot be used is an error, never a reason to take another one.
//
// # The cache
//
// An embedded helper must exist as a file before a sandbox can mount it. It is written once per
// content to <cache>/helper/<sha256>/berth-guest, in directories of mode 0700 that belong to this
// user, under a lock and by rename, so that programs starting at the same time neither see
// half a file nor replace each other's. Before every use the file is compared byte for byte with
// what the program carries; a file that differs is replaced, and the fact is logged.
// Old contents are never removed: a container may still have them mounted.
//
// # What is not protected
//
// A process of the same user can change the file between the check and the start of the helper.
// Keep the cache directory out of every workspace that a sandbox can write to.
//
// The package knows nothing of sandboxes, transports or the helper's protocol. Whether helper and
// program fit together is found out when they first speak.
package helperbin
