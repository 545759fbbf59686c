// Package guestbox is what every backend's sandbox is made of once its guest helper
// runs: files, commands, custody of process trees, revocation, and the end of a
// generation.
//
// A [Box] is one generation: one helper on one connection, in one runtime. A
// [Handle] is a caller's view of it and implements sandbox.Sandbox; several
// handles share a box, each with its own revocation, and the box ends with the last
// of them, with its connection, with its runtime, or when it can no longer be
// trusted.
//
// What is different from backend to backend is behind [Runtime]: how the place is
// ended, how its end is explained, and what can still be said of its processes
// afterwards.
//
// The package knows no engine and never starts a helper.
package guestbox
