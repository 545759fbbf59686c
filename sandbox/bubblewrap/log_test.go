package bubblewrap

import (
	"log/slog"

	"github.com/workberth/workberth/internal/tail"
)

// logBuffer keeps what was logged.
type logBuffer struct{ tail.Buffer }

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
