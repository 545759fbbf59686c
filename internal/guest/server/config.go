package server

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Config says what is served. The zero value serves nothing but echo.
type Config struct {
	// Files is served through the capabilities it declares. Nil serves no files.
	Files fsbridge.Bridge
	// Runner runs commands. Nil refuses them with errors.ErrUnsupported.
	Runner proc.Runner
	// Sweep ends what the sessions of a tag left running and returns how many
	// processes that were. Nil refuses it with errors.ErrUnsupported.
	Sweep func(ctx context.Context, tag string) (int, error)
	// Call answers control calls. Nil refuses them with errors.ErrUnsupported.
	Call Handler
	// Build is the version of the program, told in the greeting.
	Build string
	// Tag names the session, told in the greeting; at most wire.MaxWord bytes.
	Tag string
	// Logger is told about violations and failures of the served parts; nil
	// discards. It never gets content, environment or arguments.
	Logger *slog.Logger
	// Limits bound the peer; zero values mean the defaults.
	Limits Limits
}

// Handler answers a control call: a method, a body, and a body in return, each at
// most wire.MaxBody bytes. ctx ends when the caller loses interest or is gone.
// body and streams are valid until it returns. An error travels with the
// sentinels it matches; a *wire.RemoteError in it also with its Code and Hint.
type Handler func(ctx context.Context, method string, body []byte, streams Streams) ([]byte, error)

// Streams are the data of a control call beside its body. In is empty and Out
// and Err discard where the caller has no use for them. Writes wait while the
// caller does not read, and fail when it is gone.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Limits bound what one peer can make the server hold.
type Limits struct {
	// Streams is the number of open calls; at most, and by default, MaxStreams.
	Streams int
	// Content is the largest content held in memory for one call, where the
	// bridge can take or give it only as a whole; 64 MiB by default. Streamed
	// reads and writes have no such limit.
	Content int64
	// Receive is the memory for incoming content beyond the InitialWindow of each
	// call, for all calls together; 64 MiB by default. When it is used up,
	// transfers get slower.
	Receive int64
	// Handshake is how long the peer may take to say hello; 30 s by default.
	Handshake time.Duration
	// Drain is how long Serve waits for calls to end after the connection has;
	// 10 s by default, beside the grace commands are given.
	Drain time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Streams <= 0 || l.Streams > wire.MaxStreams {
		l.Streams = wire.MaxStreams
	}
	if l.Content <= 0 {
		l.Content = fsbridge.DefaultReadLimit
	}
	if l.Receive <= 0 {
		l.Receive = 64 << 20
	}
	if l.Handshake <= 0 {
		l.Handshake = wire.HandshakeTimeout
	}
	if l.Drain <= 0 {
		l.Drain = 10 * time.Second
	}
	return l
}

func (c Config) hello(pid int) wire.Hello {
	h := wire.Hello{Protocol: wire.Version, Build: c.Build, Pid: pid, Tag: c.Tag}
	if c.Runner != nil {
		h.Features = append(h.Features, wire.FeatureExec)
	}
	if c.Sweep != nil {
		h.Features = append(h.Features, wire.FeatureSweep)
	}
	if c.Call != nil {
		h.Features = append(h.Features, wire.FeatureCall)
	}
	if c.Files != nil {
		h.Capabilities = fsbridge.CapabilitiesOf(c.Files)
		h.Mounts = fsbridge.Mounts(c.Files)
	}
	return h
}
