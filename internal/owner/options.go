package owner

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// DefaultIdle is how long an owner without connections and background commands
// lives.
const DefaultIdle = 10 * time.Minute

// Request asks for one sandbox.
type Request struct {
	Backend string
	// ID is the identity of Spec for Backend.
	ID   sandbox.ID
	Spec sandbox.Spec
}

// Options say how owners are found and started.
type Options struct {
	// RuntimeDir holds sockets, locks and logs of owners; private to the user.
	RuntimeDir string
	// Executable and Args start this program in the owner role.
	Executable string
	Args       []string
	// Env is the caller's environment; the owner gets only what it needs of it.
	Env []string
	// Idle is the idle time of a started owner; zero means DefaultIdle.
	Idle time.Duration
	// StartTimeout bounds the start of an owner with its sandbox, setup command
	// included; zero means 5 minutes.
	StartTimeout time.Duration
	// BeforeStart is called before an owner is started, and not where there is one; its error is
	// Connect's. Nil means nothing to do.
	BeforeStart func(ctx context.Context) error
	// Logger may be nil.
	Logger *slog.Logger
}

// bootstrap is what a starter tells the owner on its standard input.
type bootstrap struct {
	Backend    string        `json:"backend"`
	ID         sandbox.ID    `json:"id"`
	Spec       sandbox.Spec  `json:"spec"`
	RuntimeDir string        `json:"runtimeDir"`
	Idle       time.Duration `json:"idle"`
}

// ownerEnv keeps what an owner needs of an environment: where things are, and
// nothing that may be a secret of the calling shell.
func ownerEnv(env []string) []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SSH_AUTH_SOCK", "GOCOVERDIR"}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) || strings.HasPrefix(name, "BERTH_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "DOCKER_") || strings.HasPrefix(name, "CONTAINER") || strings.HasPrefix(name, "LC_") {
			out = append(out, kv)
		}
	}
	return out
}

func discard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
