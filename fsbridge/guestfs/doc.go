// Package guestfs is the bridge to files behind a connection to the guest helper:
// in a container, on a machine reached over SSH, or behind another process.
//
// It knows the calls of the protocol and what makes their answers believable. It
// does not know how the connection was made, and never touches a file on the host.
//
// # Authority
//
// The guard of [Options] and the caller's ctx are looked at immediately before
// each single command goes out: each request, each frame of content, and the frame
// that completes a write. What fails them is not sent. Keeps FSB-10 and FSB-12.
//
// # When the connection fails
//
// A call that was not sent, or only reads, is [fsbridge.ErrUnavailable]. A change
// that may have reached the environment is [fsbridge.ErrOutcomeUnknown]. When ctx
// ends while a change is under way the environment is told and has a moment to say
// what became of it; the answer is the truth, also if that is success. Keeps FSB-11.
//
// # Trust
//
// The helper runs beside commands that may have taken it over. It can lie about
// the files of its environment, as those commands can change them; it cannot make
// the host misread a lie: names with separators, walks that climb, listings out of
// order, locations outside the mounts, contents beyond the limit end the
// connection or the call. Paths in results are names inside the environment.
package guestfs
