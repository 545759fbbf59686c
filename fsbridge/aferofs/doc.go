// Package aferofs connects bridges with github.com/spf13/afero, in both directions.
//
// # A bridge as an afero.Fs
//
// [NewFs] presents any [fsbridge.Bridge] as an afero.Fs, for code that was written against afero.
// Relative names start at the workspace, absolute ones are paths of the environment. Reading
// streams. A file opened for writing is collected and written back whole, in one atomic step, by
// Sync and Close. What the bridge lacks is an error that matches [errors.ErrUnsupported].
//
// # An afero.Fs as a bridge
//
// [NewBridge] presents an afero.Fs as a bridge. Its main use is afero.MemMapFs: a workspace in
// memory, for tests and dry runs. It declares only what an afero.Fs can do safely:
//
//   - never the pinned read: afero cannot tell the location of an open file (FSB-05);
//   - never a watch;
//   - exclusive creation, and renaming, only where [Options].Private says that nobody else changes
//     the file system, because afero offers no step that checks and acts at once;
//   - links only where the file system has them.
//
// # What is not protected
//
// Containment of NewBridge is as good as the Fs below. Paths and links are resolved element by
// element against the mount table before the Fs is asked, so that a link that leaves is refused;
// but on an Fs that others change at the same time (afero.OsFs), a link can be put in place between
// the check and the use. Use fsbridge/local for directories of this machine.
//
// The package must not know how a bridge reaches its environment.
package aferofs
