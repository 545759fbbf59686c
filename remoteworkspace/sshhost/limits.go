package sshhost

import (
	"fmt"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// Limits bound what clients can take. A zero field has the default.
type Limits struct {
	// Connections bounds all connections at once.
	Connections int
	// PerAddress bounds those of one address (of IPv6, of one /64 network).
	PerAddress int
	// PerWorkspace bounds the admitted ones of one workspace.
	PerWorkspace int
	// Unauthenticated bounds those that are not admitted yet. When there are more, the
	// oldest of them makes room.
	Unauthenticated int
	// LoginGrace is the time for the handshake and the login.
	LoginGrace time.Duration
	// AuthTries bounds failed attempts per connection.
	AuthTries int
	// Sessions bounds the open channels of one connection.
	Sessions int
	// Idle ends a connection over which nothing was sent either way for so long.
	// Keepalives do not count.
	Idle time.Duration
	// Keepalive is the time between two questions whether the client is there; after
	// KeepaliveMisses without any answer it counts as gone.
	Keepalive       time.Duration
	KeepaliveMisses int
	// EnvCount and EnvBytes bound the variables of one session.
	EnvCount int
	EnvBytes int
	// CommandBytes bounds the text of a command.
	CommandBytes int
	// OpenFiles bounds the open files and directories of one sftp session.
	OpenFiles int
	// BufferBytes bounds what all sftp sessions hold in memory, SpoolBytes what they
	// hold on disk until it is written into a workspace.
	BufferBytes int64
	SpoolBytes  int64
	// Warm is how long a sandbox without sessions stays up.
	Warm time.Duration
}

// DefaultLimits are the limits of the zero Limits.
func DefaultLimits() Limits {
	return Limits{
		Connections: 256, PerAddress: 32, PerWorkspace: 64, Unauthenticated: 64,
		LoginGrace: 30 * time.Second, AuthTries: 6, Sessions: 16, Idle: 24 * time.Hour,
		Keepalive: 7 * time.Second, KeepaliveMisses: 3,
		EnvCount: 64, EnvBytes: 16 << 10, CommandBytes: 128 << 10,
		OpenFiles: 128, BufferBytes: 256 << 20, SpoolBytes: 4 << 30,
		Warm: 10 * time.Minute,
	}
}

// complete fills in the defaults and refuses what limits nothing.
func (l Limits) complete() (Limits, error) {
	d := DefaultLimits()
	var bad []string
	count := func(name string, v *int, def int) {
		if *v == 0 {
			*v = def
		}
		if *v < 0 {
			bad = append(bad, name)
		}
	}
	span := func(name string, v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
		if *v < 0 {
			bad = append(bad, name)
		}
	}
	size := func(name string, v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
		if *v < 0 {
			bad = append(bad, name)
		}
	}
	count("connections", &l.Connections, d.Connections)
	count("perAddress", &l.PerAddress, d.PerAddress)
	count("perWorkspace", &l.PerWorkspace, d.PerWorkspace)
	count("unauthenticated", &l.Unauthenticated, d.Unauthenticated)
	span("loginGrace", &l.LoginGrace, d.LoginGrace)
	count("authTries", &l.AuthTries, d.AuthTries)
	count("sessions", &l.Sessions, d.Sessions)
	span("idle", &l.Idle, d.Idle)
	span("keepalive", &l.Keepalive, d.Keepalive)
	count("keepaliveMisses", &l.KeepaliveMisses, d.KeepaliveMisses)
	count("envCount", &l.EnvCount, d.EnvCount)
	count("envBytes", &l.EnvBytes, d.EnvBytes)
	count("commandBytes", &l.CommandBytes, d.CommandBytes)
	count("openFiles", &l.OpenFiles, d.OpenFiles)
	size("bufferBytes", &l.BufferBytes, d.BufferBytes)
	size("spoolBytes", &l.SpoolBytes, d.SpoolBytes)
	span("warm", &l.Warm, d.Warm)
	if len(bad) > 0 {
		return l, &sandbox.Problem{
			What: fmt.Sprintf("limits %v", bad), Rule: "a limit is not negative",
			Remedy: "give a positive one, or leave it out for the default", Field: "limits", Err: sandbox.ErrRefused,
		}
	}
	return l, nil
}
