package bubblewrap

import (
	"log/slog"
)

// logBuffer keeps what was logged.
type logBuffer struct{ syncBuffer }

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
