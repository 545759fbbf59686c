// Package seccomp compiles system-call policies to the BPF programs that the
// Linux kernel runs in front of every system call of a sandboxed process.
//
// [Load] takes the word or path a user configures: "default", "unconfined", or a
// file in the JSON format of Docker profiles. The result is a [Filter], an array
// of struct sock_filter as seccomp(2) and bwrap's --seccomp take it.
//
// # The default policy
//
// [Default] permits what Docker's default profile permits to a container without
// capabilities: an allow-list of some 370 calls; everything else fails with
// EPERM. In particular a process cannot make or enter namespaces (unshare, setns,
// clone with CLONE_NEW* flags), mount, load kernel modules or BPF programs, use
// the kernel's key rings, io_uring, userfaultfd, or sockets to the hypervisor.
// clone3 fails with ENOSYS, because its flags lie in memory that a filter cannot
// read and C libraries then fall back to clone.
//
// # Meaning of a policy
//
// Rules of one system call are tried in order and the first that matches
// decides; a rule without argument conditions is tried last; no match means the
// default action. Names that the architecture does not have are passed over, so
// that one policy serves several architectures.
//
// Only the machine's own calling convention is served. A call by another one
// (32-bit x86 or ARM) kills the process, since a policy for the numbers of one
// table says nothing about another; a call of the x32 convention fails with
// ENOSYS, as it does on kernels built without it.
//
// # Why an assembler of our own
//
// The tables of system-call numbers come from github.com/elastic/go-seccomp-bpf.
// Its policy compiler cannot express what Docker profiles need: a comparison
// under a mask with a value, a default errno other than EPERM, a kill for foreign
// calling conventions, first match across rules with different actions. The
// compiler here is two hundred lines because it builds a balanced tree from the
// leaves up, so that every jump length is known when the jump is written.
//
// The package knows neither sandboxes nor processes; nothing here installs a
// filter.
package seccomp
