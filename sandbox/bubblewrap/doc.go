// Package bubblewrap is the sandbox backend that needs nothing but the bwrap
// program: no daemon, no image, no root.
//
// # What a sandbox is
//
// One process of bwrap per life of a sandbox. It makes new namespaces for users,
// processes, mounts, network, IPC, host name and control groups, builds a root
// directory of its own in memory (the system's programs and libraries read-only,
// a few files of /etc, a small /dev, the configured scratch space, binds and the
// workspace), drops all capabilities, sets no_new_privs, loads the system-call
// filter and starts the guest helper as process 1. Files and commands are served
// by the helper on a socket pair that exists nowhere in the file system.
//
// The kernel ends every process in the namespace when process 1 ends. So nothing
// survives the sandbox: not when it is closed, not when the helper is killed, not
// when the process that holds the sandbox is (bwrap dies with the thread that
// started it, and the helper with bwrap).
//
// # Who the processes are
//
// On this machine they are the user that runs this program; when that is root,
// the owner of the workspace, so that what they write belongs to its owner.
// Inside they see the same numbers, or those of Config.User.
//
// # Limits
//
// Where this process may make control groups, limits on processes, memory and
// processor time are those of a group that bwrap is born into. Elsewhere the number
// of processes is bounded by RLIMIT_NPROC, which counts per user namespace, memory
// per process by RLIMIT_AS, and processor time not at all. Info.Runtime tells what
// is in force.
//
// # What is not protected
//
// The kernel is shared: a fault in it is a way out. Network "host" shares the
// machine's network with its local services and abstract sockets. A bind below
// the workspace needs a mount point there, which is made, with the owner of the
// workspace, and stays.
package bubblewrap
