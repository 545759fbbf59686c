//go:build !linux

package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/workberth/workberth/fsbridge"
)

// Bridge serves local files on Linux only: its containment is built on Linux's system calls. On
// other systems New fails, so that programs that use other targets can be built there.
type Bridge struct{}

var _ fsbridge.Bridge = (*Bridge)(nil)

var errSystem = fmt.Errorf("local bridges need Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// New fails on this system.
func New(Options) (*Bridge, error) { return nil, errSystem }

// Close does nothing.
func (*Bridge) Close() error { return nil }

// TempTag returns nothing.
func (*Bridge) TempTag() string { return "" }

// Guarded returns the bridge.
func (b *Bridge) Guarded(fsbridge.AssertFunc) *Bridge { return b }

// Sweep fails on this system.
func (*Bridge) Sweep(context.Context, string) (int, error) { return 0, errSystem }

// Stat fails on this system.
func (*Bridge) Stat(_ context.Context, path string) (fsbridge.FileInfo, error) {
	return fsbridge.FileInfo{}, &fsbridge.PathError{Op: "stat", Path: path, Err: errSystem}
}

// ReadFile fails on this system.
func (*Bridge) ReadFile(_ context.Context, path string) ([]byte, error) {
	return nil, &fsbridge.PathError{Op: "read", Path: path, Err: errSystem}
}

// WriteFile fails on this system.
func (*Bridge) WriteFile(_ context.Context, path string, _ []byte) error {
	return &fsbridge.PathError{Op: "write", Path: path, Err: errSystem}
}
