// Package wire is the language of the guest helper: frames, the messages inside
// them, and how errors travel. It knows neither connections nor what a call does.
//
// # Why the encoding is written by hand
//
// The helper is a small static program that runs on any image, so it links the
// standard library and golang.org/x/sys only. Of what the standard library
// offers, encoding/gob compiles types at run time, allocates as the peer's type
// description says and has no bound per value; encoding/json is slow, cannot
// carry bytes that are not UTF-8 and has no bound per value either. The peer is
// untrusted on one side, and one call must cost microseconds. So the messages are
// a plain sequence of values, each with its own bound:
//
//	uvarint, varint   as encoding/binary writes them
//	bool              one byte, 0 or 1
//	string, bytes     uvarint length, then that many bytes
//	list              uvarint count, then the elements
//	tail              the rest of the payload, where content is carried
//
// Both sides speak exactly the same [Version]; a peer of another version is told
// so and sent away. Therefore no message has optional or unknown fields, and a
// decoder refuses what it does not know: wrong bools, unknown enumerations, bytes
// left over. Decoders allocate no more than a small multiple of the bytes that
// really arrived, never what a count promises.
//
// Transcripts of every kind of call are kept in testdata/golden, byte for byte.
package wire
