// Package guest describes the protocol between a host and the guest helper, the
// small static program (cmd/berth-guest) that serves files and commands inside a
// sandbox. An owner process serves its sandbox to other processes of the same user
// with the same protocol. Its rooms:
//
//	wire        frames and messages: encoding, bounded decoding, golden transcripts
//	mux         streams with flow control over one connection
//	server      serves a fsbridge.Bridge and a proc.Runner on a connection
//	client      the host's side: calls, streams, processes
//	proc        the vocabulary of commands: specification, status, start errors
//	reaper      runs commands inside the environment and ends whole process trees
//	rendezvous  the one-shot Unix socket a helper on this machine calls back to
//	guesttest   fakes for tests: bridges, runners, peers that follow a script
//
// # The protocol on one screen
//
// One connection (two pipes, a socket, or an SSH channel) carries frames:
//
//	uint32 length of the rest | uint8 kind | uint64 stream | payload      (big endian)
//
// At most MaxFrame bytes follow the length; a longer or unknown frame ends the
// connection. Before the first frame the helper sends the eight magic bytes;
// whatever a login shell printed before them is skipped, up to a limit, and
// quoted in the error when the magic never comes.
//
//	kind      direction  payload
//	hello     both, once protocol version, build version, process id, session tag,
//	                     features, capabilities, mounts
//	open      to server  operation, its request, perhaps the beginning of its content:
//	                     starts a stream
//	reply     to client  first answer of a call that goes on, at most one
//	done      to client  result: ends the stream
//	fail      to client  error: codes, errno, path, text, details: ends the stream
//	data      both       channel, bytes; never more than the credit
//	end       both       channel: half close
//	credit    both       channel, bytes: so many more may be sent
//	cancel    to server  (none): the caller lost interest
//
// The server speaks first: magic and hello. The client answers with its own hello;
// both check the version, and a mismatch is an error on both sides that names both
// versions. The first two fields of hello keep their place for ever.
//
// A stream is one call. Stream numbers are chosen by the client, rise, and are
// never reused. A call that is answered at once is one frame each way: open and
// done. Content that is larger than a frame, directory entries, steps of a walk,
// events and the output of commands travel as data. A command is a stream as well;
// signals, terminal sizes and terminations are calls that name its stream.
//
// # Flow control
//
// Every channel of a stream has its own credit, so a slow reader of one holds up no
// other: the goroutine that reads a connection never waits. Channel 0 is input to
// the server, 1 output, 2 error output. Each begins with InitialWindow bytes, or
// with what the request says.
//
// # Changes
//
// A write takes effect only after its whole content has come, with the end frame or
// in an open frame marked as the last. A call is over for the server when it has
// sent done or fail; what the client sent before it knew that is ignored. After
// cancel the server still answers, with what really happened.
//
// # The lease
//
// The connection is the lease: when the helper's input ends it cancels every call,
// ends every command tree that was not started to be kept, and exits.
//
// # Trust
//
// The helper has the rights of the commands beside it and adds no power to the
// inside. The host treats every byte it sends as hostile: lengths, counts and
// strings are bounded before anything is allocated, sizes and paths it reports
// are data and never name a file on the host. The server bounds its client in the
// same way.
package guest
