// Package version answers one question: which build is this program?
//
// Both programs, berth and the guest helper, print and exchange the answer, so the package
// imports the standard library only. It knows nothing about compatibility: comparing the
// versions of two peers is the business of the protocol that introduces them to each other.
package version
