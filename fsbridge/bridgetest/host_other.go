//go:build unix && !linux

package bridgetest

import (
	"context"
	"errors"
	"testing"
)

// mountScratch needs Linux.
func mountScratch(t testing.TB, _ string, _ int64) {
	t.Helper()
	t.Skip("a scratch file system can be mounted on Linux only")
}

// SwapLoop needs an atomic exchange of two names, which this system does not have.
func SwapLoop(context.Context, []Swap) (int64, error) { return 0, errors.ErrUnsupported }

func exchangeOnce(string, string) error { return errors.ErrUnsupported }
