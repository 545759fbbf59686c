package wire

import "time"

// Version is the version of the protocol. Two peers understand each other only
// when it is equal. It rises with every change of a message.
const Version = 1

// Magic is what the helper sends before its first frame. As in a PNG file, a byte
// above 127 and a CR LF pair show a channel that does not carry bytes unchanged.
const Magic = "\x89BERTH\r\n"

// Bounds of frames and streams.
const (
	// MaxFrame is the largest number of bytes that may follow a frame's length.
	MaxFrame = 1 << 20
	// HeaderSize is the size of a frame's header: length, kind, stream.
	HeaderSize = 13
	// MaxHello bounds a hello frame.
	MaxHello = 64 << 10
	// MaxBanner is how many bytes before the magic are skipped.
	MaxBanner = 256 << 10
	// MaxQuote is how much of a banner, or of a peer's text, an error quotes.
	MaxQuote = 1024
	// MaxStreams is how many calls may be open on one connection at a time.
	MaxStreams = 4096
	// MaxInline is the largest content that travels inside the frame that opens
	// or ends a call; more goes into data frames.
	MaxInline = 256 << 10
	// DataChunk is the most content a sender puts into one data frame. It bounds
	// how long a bulk transfer holds up other calls on a slow line.
	DataChunk = 128 << 10
)

// Credit of a channel, in bytes of data payload.
const (
	// InitialWindow is what a sender may send before it has received credit.
	InitialWindow = 64 << 10
	// StreamWindow is what a receiver of a command's output or input allows.
	StreamWindow = 256 << 10
	// BulkWindow is what a receiver of a file's content allows.
	BulkWindow = 2 << 20
	// MaxWindow is the most credit a sender may ever hold; more is a violation.
	MaxWindow = 16 << 20
)

// Bounds of single values.
const (
	// MaxPath is the longest path, in bytes.
	MaxPath = 4096
	// MaxName is the longest name of a file in its directory, in bytes.
	MaxName = 255
	// MaxText is the longest error text, in bytes. Longer ones are cut.
	MaxText = 4096
	// MaxWord bounds names the programs themselves choose: capabilities, methods,
	// tags, builds, markers.
	MaxWord = 256
	// MaxList bounds short lists: capabilities, mounts, names to skip.
	MaxList = 1024
	// MaxArgs bounds the arguments and the environment of a command, each. Their
	// bytes are bounded by the frame.
	MaxArgs = 64 << 10
	// BatchBytes is where a sender closes a batch of records. Batch and largest
	// record together stay below three quarters of InitialWindow: a frame that
	// waits for credit must never need more than a receiver is sure to grant.
	BatchBytes = 24 << 10
	// MaxPids bounds the processes a termination reports.
	MaxPids = 4096
	// MaxBody bounds the request and the result of a control call.
	MaxBody = MaxFrame - 4096
)

// HandshakeTimeout is how long a peer may take to say hello where no other time
// is given.
const HandshakeTimeout = 30 * time.Second
