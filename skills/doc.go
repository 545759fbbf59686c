// Package skills finds agent skills: folders with a SKILL.md in the Agent Skills format, wherever
// they lie, and says of every one that it found what became of it.
//
// # Facts and decisions
//
// [Discover] reads the skill roots of one machine through a [fsbridge.Bridge] and asks a [Prober],
// once, what that machine has. The result is a [Discovery]: facts. [Select] joins the discoveries
// of several machines and decides: which skill wins a name, which one the configuration disables,
// which one needs what its machine has not. The result is a [Listing] with one [Verdict] for each
// SKILL.md found. Nothing is dropped: a file that cannot be understood is listed with its line, the
// rule and what to do. The command that checks skills and the one that loads them are this code.
//
// A skill's requirements are judged by the facts of its own discovery, so those of a workspace on
// another machine by what that machine has. Keeps SKL-02 to SKL-05.
//
// # Precedence
//
// Skills of the workspace win over installed ones, those over bundled ones; within a kind the
// earlier root wins, within a root the path that sorts first. Only a skill that loads can win: one
// that is rejected or misses something leaves its name to the next, and both verdicts say so.
//
// # What is trusted
//
// The content of a skill is data of whoever wrote it. Its name becomes part of a path only as a
// checked slug (lower-case letters, digits, hyphens). Links are followed where the bridge permits
// it, which is inside its mounts: a link out of a root is followed only if a mount holds its target.
//
// The package knows no sandbox and no backend. See skills/probe for probers and skills/mirror for
// bringing skills into a sandbox.
package skills
