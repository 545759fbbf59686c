// Package sftpfs reaches the files of a machine that offers SFTP and nothing else: no command can be
// run there, so no helper either. It drives the client of github.com/pkg/sftp; the connection is the
// caller's.
//
// # What it declares
//
// Everything that SFTP can do without a promise being broken, and nothing else. Missing are:
//
//   - the pinned read: SFTP does not tell where an open file lies (FSB-05);
//   - streamed listings: the client collects a whole directory before it returns it;
//   - appending: servers differ in what they make of two that append at once;
//   - copying: the content would cross the connection twice;
//   - watching.
//
// Exclusive creation is declared where the server has hardlink@openssh.com, because only a hard link
// gives complete content a name that must be free. Changing a file that exists needs
// posix-rename@openssh.com, and flushing needs fsync@openssh.com: without them such a write is refused
// with ErrUnsupported before anything is changed, instead of removing the old file first. A file is never
// moved to another file system (ErrCrossDevice): SFTP cannot tell whether the source is still the one
// that was copied.
//
// Hashes, and the preconditions built on them, are honest and slow: the content is read. Times have
// whole seconds; Nlink, Dev and Inode are zero. Sync flushes the content of a file; SFTP has no request
// that flushes a directory.
//
// # What is not protected
//
// Containment is done by path: every element of a path is looked at, and every link is read and
// resolved here against the mount table, before the server is asked for the result. Links that leave
// are refused. But SFTP has no directory handles: between that look and the request, a process on that
// machine with the right to change the directory can put a link in place, and the request then follows
// it, with the rights of the account. No check on this side closes that window. Where processes on the
// machine are hostile, give the account nothing outside the mounts (a chroot, a container), or use a
// bridge with a helper. The mounts themselves should be named by their real paths.
//
// A precondition, and a name that must be free where the server cannot check that itself, holds between
// the calls of one Bridge; another client can come in between. A temporary file has the mode of new
// files for the moment between its creation and the request that sets its own, while it is empty.
//
// A connection that is cut while a file is written leaves that write's temporary file, named
// .berth-sftp-*, which listings leave out. Once a request that changes something was sent, a lost
// connection is ErrOutcomeUnknown for the whole call (FSB-11).
//
// # Hostile and hanging servers
//
// Answers are checked: sizes, types, names in listings, lengths of reads. No request waits for longer
// than Options.RequestTimeout or the context; one that is given up is left to the connection, and so
// many of them end the bridge's use of it. A listing is held in memory as a whole, and one without an end
// is left at the timeout. A request that is given up may still take effect: that is
// what ErrOutcomeUnknown says.
//
// The guard is asked before every request (FSB-10) except those that take back what the same call has
// made: closing a handle and removing a temporary file.
//
// The package must not know how the connection was made, and imports no other bridge.
package sftpfs
