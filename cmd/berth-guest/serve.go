//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/version"
)

// memoryLimit is what the Go runtime tries to stay below, in bytes. Content is
// streamed, so that a helper needs little.
const memoryLimit = 64 << 20

// warmThreads are made at the start, while there is room for them: a fork bomb must
// not find the helper in need of another one. It is about how many calls are in the
// kernel at a time.
const warmThreads = 8

// connectTimeout bounds calling back to a socket.
const connectTimeout = 30 * time.Second

// connector gives the connection to serve on.
type connector func(ctx context.Context) (io.ReadWriteCloser, error)

// serve serves until the connection ends, then ends every command.
func serve(o options, connect connector) error {
	debug.SetMemoryLimit(memoryLimit)
	ctx, stop := untilAsked()
	defer stop()
	if err := reaper.Harden(reaper.HelperName); err != nil {
		return err
	}
	reaper.Warm(warmThreads)
	log := newLogger(os.Stderr)
	if o.home != "" {
		if err := os.Mkdir(o.home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			log.Warn("the home directory cannot be made", "error", err)
		}
	}
	files, err := local.New(local.Options{Mounts: o.mounts, TempTag: o.tag, ReadLimit: o.readLimit, Logger: log})
	if err != nil {
		return err
	}
	defer files.Close()
	orphans := reaper.NewOrphans()
	runner := reaper.New(reaper.Options{
		ResolveDir: func(ctx context.Context, dir string) (*os.File, error) {
			if dir == "" {
				dir = "."
			}
			return files.OpenDir(ctx, dir)
		},
		Orphans: orphans, Tag: o.tag, Logger: log,
	})
	over, end := context.WithCancel(context.Background())
	var served error
	go func() {
		defer end()
		conn, err := connect(ctx)
		if err != nil {
			served = err
			return
		}
		err = server.Serve(ctx, conn, server.Config{
			Files: files, Runner: runner,
			Sweep: func(ctx context.Context, tag string) (int, error) { return sweep(ctx, files, runner, tag) },
			Build: version.Version(), Tag: o.tag, Logger: log,
		})
		// Asked to end, or the lease has ended, is no failure.
		if !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrClosed) {
			served = err
		}
		served = errors.Join(served, runner.Close(context.Background())) // bounded by the commands' grace
	}()
	if err := orphans.Run(over); err != nil {
		return err
	}
	return served
}

// sweep removes what a dead life of this sandbox left: its processes first, then
// the temporary files it can no longer be writing.
func sweep(ctx context.Context, files *local.Bridge, runner *reaper.Runner, tag string) (int, error) {
	ended, err := runner.Sweep(ctx, tag)
	removed, ferr := files.Sweep(ctx, tag)
	return ended + removed, errors.Join(err, ferr)
}

// standardStreams serves on standard input and output. Commands do not inherit
// either.
func standardStreams(context.Context) (io.ReadWriteCloser, error) { return mux.Stdio() }

// callBack connects to a socket with the token that is the first line of standard
// input. When standard input ends the connection is closed: the channel that
// started the helper stays its lease.
func callBack(socket string) connector {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		in := bufio.NewReaderSize(os.Stdin, 512)
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("reading the token: %w", err)
		}
		conn, err := rendezvous.Dial(ctx, socket, strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, err
		}
		go func() {
			_, _ = io.Copy(io.Discard, in) // only its end matters
			_ = conn.Close()               // the server sees it
		}()
		return conn, nil
	}
}

// accept connects to where an invitation leads. The connection is the only lease.
func accept(inv rendezvous.Invitation) connector {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return rendezvous.Dial(ctx, inv.Socket, inv.Token)
	}
}
