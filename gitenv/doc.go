// Package gitenv works with the configuration git reads from its environment: it parses, quotes and composes
// GIT_CONFIG_PARAMETERS, the variable in which a parent hands `git -c key=value` settings to every git below it.
//
// # What it is for
//
// A host that runs an agent attempt may want the processes the harness starts on this machine to see a few extra
// git settings: a safe.directory for exactly the mounted workspace, a credential helper, a proxy. It hands them over
// as a fragment, prepared with [Fragment] or [SafeDirectories] and captured in a [PreparedEnvironment]. [Apply] puts
// the fragment behind whatever the child would have had anyway, so nothing that is already configured gets lost.
//
// # The rules
//
//   - The base is the explicit value if there is one, an empty one included, otherwise the inherited one; the
//     fragment comes last. Base and fragment are opaque: never reordered, quoted again or interpreted ([Compose]).
//   - Only a process that the harness itself starts on this machine gets the fragment. A sandboxed, remote or
//     foreign peer keeps the owner its environment already has ([Placement]).
//   - The runtime's own filters act after composing and win. Where they remove GIT_CONFIG_PARAMETERS, the fragment is
//     gone with it ([Child]).
//   - Credentials a child inherits stay in that child's environment. What may be copied further, into overrides of a
//     tool request or into durable configuration, is what [SplitEnv] and [SplitConfig] let through.
//   - No error text of this package repeats a key or a value, since either may hold a credential. Errors name the
//     variable, the byte offset and the rule.
//
// # Git in a workspace the sandbox can write
//
// A repository's own configuration can run programs: hooks, filters, a file system monitor, a diff driver. So the
// rule is to run git inside the sandbox, never on the host, for a directory the sandbox can write. [Harden] is the
// second line of defence for a host git that must look at a repository from elsewhere; its comment lists what it
// cannot cover.
//
// # What it must not know
//
// The package is pure: it imports the standard library only, starts no process, reads no file and does not look at
// the environment of its own process; callers pass environments in. It knows nothing of sandboxes, harnesses or
// transports. The tests compare it with the git that is installed.
package gitenv
