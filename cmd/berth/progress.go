package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/workberth/workberth/fsbridge"
)

// progressAfter is how long a transfer runs before its progress is shown.
const progressAfter = 500 * time.Millisecond

// progress counts bytes written to it and shows them on stderr when that is a
// terminal and the transfer lasts. size is -1 where it is not known.
func (a *app) progress(what string, size int64) io.WriteCloser {
	f, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || a.getenv("TERM") == "dumb" {
		return nopWriteCloser{io.Discard}
	}
	return &lateBar{start: time.Now(), make: func() *progressbar.ProgressBar {
		return progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(f),
			progressbar.OptionSetDescription(fsbridge.DisplayPath(what)),
			progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(20),
		)
	}}
}

// lateBar is a progress bar that appears only when a transfer lasts.
type lateBar struct {
	start time.Time
	n     int64
	make  func() *progressbar.ProgressBar
	bar   *progressbar.ProgressBar
}

// Write counts p.
func (b *lateBar) Write(p []byte) (int, error) {
	b.n += int64(len(p))
	if b.bar == nil && time.Since(b.start) > progressAfter {
		b.bar = b.make()
	}
	if b.bar != nil {
		_ = b.bar.Set64(b.n) // a progress bar that cannot be drawn is no failure
	}
	return len(p), nil
}

// Close clears the bar.
func (b *lateBar) Close() error {
	if b.bar == nil {
		return nil
	}
	return b.bar.Clear()
}

type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }
