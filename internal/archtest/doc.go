// Package archtest holds the repository's rules as tests, so that breaking one fails like any
// other fault: which room may import which, what each package and file owes its reader, which
// promises of the contract a test must name, and which documents must be current.
//
// Each rule is one file. A rule that allows exceptions keeps them in a table with a reason for
// each, and an exception that is no longer needed fails too. The package reads the source; it
// imports nothing of it and contains no code besides its tests.
package archtest
