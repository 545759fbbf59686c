// Package remoteworkspace routes the documents of an agent's workspace to the
// machine that owns them.
//
// A workspace is a directory with instruction documents (AGENTS.md, IDENTITY.md,
// ...), memory and skills. When it lies on another machine, a trusted host binds
// it ([Registry.Declare], [Registry.Register]) with an [Access], whose bridge
// reaches the files. From then on the document methods ([DocumentService]), the
// reads at the start of a session ([Workspaces.LoadBootstrap]) and the one after
// a compaction go through that bridge, with the same requests, answers, allowlist
// and authorisation as for a workspace of this machine.
//
// # The binding is the only truth
//
// A directory that was declared is never served from this machine's disk: while
// its access is not registered, after it was released, and whenever the far side
// cannot be reached, calls fail with [ErrUnavailable]. A directory that was never
// declared keeps local access. A binding stays in force until it is released; the
// end of a turn does not touch it.
//
// # What a binding is not
//
// It makes no workspace, chooses no target, logs in nowhere and fetches no
// credentials: the host does that before it registers. It creates and fills no
// second copy. It gives access to documents and the reads of a session's start,
// and neither starts a worker on the far side nor moves the agent loop. It does
// not switch off the synchronisation of workspaces either; what that takes is
// [SyncRequirements].
//
// # Conflicts
//
// A save may demand the hash of the content it replaces. That detects lost
// updates and is not a lock: programs on the far side do not queue behind the
// saves of this package and may write between the check and the write. A save
// whose connection fails is reported as [ErrOutcomeUnknown] and never repeated by
// itself: read again, compare the hash, then decide.
//
// # What it must not know
//
// The package knows bridges and no sandbox, backend or engine, and opens no file
// itself. Who serves the local workspaces is passed in ([LocalFunc]).
//
// Keeps RWS-01 to RWS-23.
package remoteworkspace
