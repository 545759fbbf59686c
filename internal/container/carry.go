package container

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// fillPlace is where a volume appears in the container by which it is filled, which never runs.
const fillPlace = "/berth-volume"

// helpersDir holds, in the directory of records, a file for each helper that is known to be complete on
// an engine.
const helpersDir = "helpers"

// carryHelper sees that the helper is in its volume. That is made once per content, and so per
// architecture, and belongs to this directory of records alone.
func (g *generation) carryHelper(ctx context.Context) error {
	name := g.b.helperVolume(g.away.helper.sum)
	dir := filepath.Join(g.b.opts.StateDir, helpersDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of carried helpers: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	// The engine of this address may be another one tomorrow, so it is asked too.
	proof := filepath.Join(dir, name)
	_, known := os.Stat(proof)
	v, err := g.engine.Volume(ctx, name)
	switch {
	case err == nil && v.Labels[labelState] != g.b.state:
		return &sandbox.Problem{
			What: fmt.Sprintf("a volume is called %s already", name), Rule: "its labels do not say that it is ours",
			Remedy: "remove it: " + g.b.opts.Name + " volume rm " + name, Err: sandbox.ErrUnavailable,
		}
	case err == nil && known == nil:
		return nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return g.b.unreachable(err)
	}
	f := &filler{g: g, volume: name, container: name + "-fill", labels: map[string]string{labelHelper: g.away.helper.sum}}
	if err := f.carry(ctx, err == nil); err != nil {
		return g.fillFailure(ctx, "the guest helper", err)
	}
	g.b.dropHelpers(ctx, g.engine, name)
	return os.WriteFile(proof, nil, 0o600)
}

// carry brings the helper into its volume and reads it back. One that is there is looked at first.
func (f *filler) carry(ctx context.Context, exists bool) (err error) {
	helper := f.g.away.helper
	if exists {
		if err := f.open(ctx); err != nil {
			return err
		}
		if f.holds(ctx, helper.sum) == nil {
			return f.close(ctx)
		}
		if err := errors.Join(f.close(ctx), f.g.engine.RemoveVolume(ctx, f.volume)); err != nil {
			return err
		}
	}
	f.g.b.log.Info("carrying the guest helper to the engine's machine", "volume", f.volume)
	if err := f.g.engine.CreateVolume(ctx, f.volume, f.allLabels()); err != nil {
		return err
	}
	if err := f.open(ctx); err != nil {
		return err
	}
	err = f.put(ctx, 0o755, 0, 0, func(w *tar.Writer) error { return putHelper(w, helper.path) })
	if err == nil {
		err = f.holds(ctx, helper.sum)
	}
	return errors.Join(err, f.close(ctx))
}

// putHelper writes the program into an archive.
func putHelper(w *tar.Writer, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h := tar.Header{Name: path.Base(helperFile), Typeflag: tar.TypeReg, Mode: 0o555, Size: info.Size(), ModTime: info.ModTime()}
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.CopyN(w, in, info.Size())
	return err
}

// holds reads the helper back from the engine and demands that it is the right one.
func (f *filler) holds(ctx context.Context, sum string) error {
	r, err := f.g.engine.Pack(ctx, f.container, path.Join(fillPlace, path.Base(helperFile)))
	if err != nil {
		return err
	}
	defer r.Close()
	t := tar.NewReader(r)
	h, err := t.Next()
	if err != nil {
		return fmt.Errorf("read the helper back: %w", err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, t); err != nil {
		return fmt.Errorf("read the helper back: %w", err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); h.Typeflag != tar.TypeReg || h.Mode&0o555 != 0o555 || got != sum {
		return fmt.Errorf("the engine holds another program than it was given: %s, mode %o, in place of %s", got, h.Mode, sum)
	}
	return nil
}

// dropHelpers removes earlier helpers that no container has any more.
func (b *Backend) dropHelpers(ctx context.Context, engine Engine, but string) {
	volumes, err := engine.Volumes(ctx, b.ours())
	if err != nil {
		return // it is tidiness only
	}
	for _, v := range volumes {
		if sum := v.Labels[labelHelper]; sum == "" || v.Name == but || len(sum) != sha256.Size*2 || v.Name != b.helperVolume(sum) {
			continue
		}
		if err := engine.RemoveVolume(ctx, v.Name); err == nil {
			_ = os.Remove(filepath.Join(b.opts.StateDir, helpersDir, v.Name))
		}
	}
}

// sumOf is the SHA-256 of a file.
func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 20 * time.Millisecond

// lock takes a lock among processes, which the kernel gives back when this one ends.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
