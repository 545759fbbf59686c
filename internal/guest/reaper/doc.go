// Package reaper runs commands inside an environment and ends whole process
// trees. It implements [proc.Runner]. It knows neither the wire nor who asks.
//
// # One reaper per command
//
// The Runner, in the helper, has one further process for each command: the
// reaper, which is the helper's own program in a private role. The reaper is the
// child subreaper of everything the command starts, so a process that leaves its
// session, its process group or its environment (setsid, double fork, env -i) is
// still its descendant, and becomes its child when the parent dies. To end the
// tree it sends SIGTERM, waits for the grace, and then repeats {walk the tree,
// SIGSTOP all, SIGKILL all, wait} until wait4 says ECHILD. The kernel's ECHILD is
// the proof behind [proc.Gone]: no list of processes, which is out of date when
// it has been read, could give one.
//
//	helper (Runner) ── reaper ── command ── ...
//	       │             └────── adopted descendants
//	       ├── reaper ── command
//	       └── idle reaper, ready for the next command
//
// Helper and reaper speak over a socket pair; the specification, the working
// directory and the standard streams travel there, never in an argument or an
// environment. Output goes from the command to the helper directly.
//
// A reaper that has seen ECHILD has nothing left of its command and serves the
// next one; up to two wait idle. So a command costs little more than its fork and
// exec. A reaper counts as four threads against a limit on processes, so each
// running command takes at least five; it has about 2 MB of its own.
//
// # When something dies
//
//   - The direct child: its status is reported once everything it wrote has been
//     delivered. What it left behind is ended, unless it was to be kept.
//   - The helper: every reaper sees its socket end and ends its tree; one that a
//     command has stopped gets SIGCONT by PR_SET_PDEATHSIG. (Being killed by it would
//     leave the tree behind.) A tree that was to be kept stays, its reaper discards
//     what it writes, and a later Runner.Terminate finds it by its marker.
//   - A reaper, killed by a hostile command: its descendants become children of
//     the helper (see [Orphans]), which kills them all and knows from ECHILD that
//     they are gone. The status of the command is then unknown, and says so.
//
// # What is not protected
//
// A command has the helper's user id. It can send signals to the helper, to
// reapers and to other commands; it cannot debug them, since helper and reapers
// are not dumpable (except in the fraction of a millisecond between their start
// and the call that makes them so). A process outside the environment that a
// command talked into working for it (a daemon, an engine's socket) is not in its
// tree. A process with another user id (a set-user-id program) may refuse the
// signals; it is then reported as a survivor.
package reaper
