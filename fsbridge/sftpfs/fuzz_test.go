//go:build linux

package sftpfs_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
)

// FuzzAnswers lets a server answer one request with anything: no call panics, hangs, or gives an error that
// is none of the bridge's own.
func FuzzAnswers(f *testing.F) {
	for _, a := range []*answer{
		status(0), status(1), status(2), status(4), attrs(0o100644, 1<<63), attrs(0o120777, 3), names("a", ".."), names(strings.Repeat("a/", 5000)),
		{pktData, []byte{255, 255, 255, 255, 0}}, {pktHandle, nil}, {pktName, []byte{127, 255, 255, 255}}, {pktAttrs, []byte{128, 0, 0, 0, 255, 255, 255, 255}}, {0, nil},
	} {
		for at := range uint8(8) {
			f.Add(at, a.typ, a.body)
		}
	}
	f.Fuzz(func(t *testing.T, at, typ uint8, body []byte) {
		if len(body) > 200_000 {
			t.Skip("longer than a packet may be")
		}
		for name, do := range map[string]func(context.Context, *sftpfs.Bridge) error{
			"read": func(ctx context.Context, b *sftpfs.Bridge) error { _, err := b.ReadFile(ctx, "d/f"); return err },
			"list": func(ctx context.Context, b *sftpfs.Bridge) error { _, err := b.ReadDirectory(ctx, "."); return err },
			"write": func(ctx context.Context, b *sftpfs.Bridge) error {
				_, err := b.WriteStream(ctx, "f", strings.NewReader("x"), fsbridge.WriteOptions{Mode: 0o600})
				return err
			},
			"remove": func(ctx context.Context, b *sftpfs.Bridge) error {
				return b.Remove(ctx, "f", fsbridge.RemoveOptions{Recursive: true})
			},
			"link": func(ctx context.Context, b *sftpfs.Bridge) error {
				return b.Symlink(ctx, "x", "new", fsbridge.SymlinkOptions{Replace: true})
			},
		} {
			var n atomic.Int64
			client := scripted(t, func(byte, []byte) *answer {
				if n.Add(1) == int64(at)+1 {
					return &answer{typ, body}
				}
				if n.Load() > 1000 {
					return status(4) // an endless listing or the like
				}
				return ordinary
			})
			b := bridge(t, client, "/ws", func(o *sftpfs.Options) { o.RequestTimeout = 2 * time.Second })
			err := within(t, func() error { return do(t.Context(), b) })
			var pe *fsbridge.PathError
			if err != nil && !errors.As(err, &pe) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
