// Package hostmount decides what of this machine appears in a sandbox on this machine: which
// directories at which places, for which user, and makes the places of mounts in them, without
// following a link that somebody may have put in the way.
//
// It mounts nothing and knows no backend.
package hostmount
