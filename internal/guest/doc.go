// Package guest describes the protocol between a host and the guest helper, the
// small static program (cmd/berth-guest) that serves files and commands inside a
// sandbox. Its rooms:
//
//	wire        frames and messages: encoding, bounded decoding, golden transcripts
//	mux         streams with flow control over one connection
//	server      serves a fsbridge.Bridge and a proc.Runner on a connection
//	client      the host's side: calls, streams, processes
//	proc        the vocabulary of commands: specification, status, start errors
//	reaper      runs commands inside the environment and ends whole process trees
//	rendezvous  the one-shot Unix socket a helper on this machine calls back to
//
// # The protocol on one screen
//
// One connection (two pipes, a socket, or an SSH channel) carries frames:
//
//	uint32 length of the rest | uint8 kind | uint32 stream | payload      (big endian)
//
// At most MaxFrame bytes follow the length; a longer or unknown frame ends the
// connection. Before the first frame the helper sends the eight magic bytes;
// whatever a login shell printed before them is skipped, up to a limit, and
// quoted in the error when the magic never comes.
//
//	kind      direction  payload
//	hello     both, once protocol version, build version, process id, features, session tag
//	open      to server  operation, its arguments              starts a stream
//	reply     to client  result of the operation               ends the request phase
//	fail      to client  error: code, errno, text, details     ends the stream
//	data      both       channel, bytes                        never more than the credit
//	end       both       channel                               half close
//	credit    both       channel, bytes                        the receiver has consumed so many
//	cancel    to server  (none)                                the caller lost interest
//	control   to server  signal, resize, terminate             on a command's stream
//	event     to client  started, exited, watch event, walk or list batch
//	done      to client  status                                ends the stream
//
// A stream belongs to one call. Stream numbers are chosen by the client, rise,
// and are never reused. Every channel has its own credit, so a slow reader of one
// stream holds up no other. The server answers hello with its version; a
// mismatch is an error on both sides that names both versions.
//
// The connection is the lease: when the helper's input ends it cancels every
// call, ends every command tree that was not started to be kept, and exits.
//
// # Trust
//
// The helper has the rights of the commands beside it and adds no power to the
// inside. The host treats every byte it sends as hostile: lengths, counts and
// strings are bounded before anything is allocated, sizes and paths it reports
// are data and never name a file on the host.
package guest
