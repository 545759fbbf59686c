package container

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Archive is a file of this machine that holds an image: one that an engine has saved, or a root file
// system.
type Archive struct {
	Path string
	// Image is what the image is called once it is on an engine: it follows from the content alone.
	Image string
	// Saved tells the one kind from the other.
	Saved bool
}

// archiveRepository is the name of images made of root file systems.
const archiveRepository = "berth-archive"

// maxManifest bounds what is read of a saved image's description, in bytes.
const maxManifest = 4 << 20

// ReadArchive looks at an archive, compressed with gzip or not. No engine is asked.
func ReadArchive(file string) (Archive, error) {
	a := Archive{Path: file}
	bad := func(rule string, err error) (Archive, error) {
		return a, &sandbox.Problem{
			Field: "image-archive", What: fmt.Sprintf("archive %q", file), Rule: rule,
			Remedy: "give a tar archive of a root file system, or one that docker save or podman save has written", Err: errors.Join(sandbox.ErrRefused, err),
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return bad(err.Error(), err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return bad("it is not a regular file", err)
	}
	config, entries, err := savedConfig(f)
	switch {
	case err != nil:
		return bad("it cannot be read: "+err.Error(), err)
	case entries == 0:
		return bad("it is empty", nil)
	case config != "":
		a.Saved, a.Image = true, config
		return a, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return bad(err.Error(), err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return bad(err.Error(), err)
	}
	a.Image = archiveRepository + ":" + hex.EncodeToString(h.Sum(nil))[:24]
	return a, nil
}

// savedConfig finds, in a saved image, the digest of its configuration, which is its id; empty for
// another archive.
func savedConfig(f *os.File) (config string, entries int, err error) {
	var r io.Reader = f
	head := make([]byte, 2)
	if n, _ := f.ReadAt(head, 0); n == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return "", 0, err
		}
		defer z.Close()
		r = z
	}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return "", entries, nil
		}
		if err != nil {
			return "", entries, err
		}
		entries++
		if path.Clean(h.Name) != "manifest.json" || h.Size > maxManifest {
			continue
		}
		var images []struct{ Config string }
		if err := json.NewDecoder(io.LimitReader(t, maxManifest)).Decode(&images); err != nil || len(images) == 0 {
			continue // a file of that name in a root file system
		}
		if len(images) > 1 {
			return "", entries, errors.New("it holds several images; save one of them")
		}
		// "<digest>.json", or "blobs/sha256/<digest>".
		digest := strings.TrimSuffix(path.Base(images[0].Config), ".json")
		if len(digest) == sha256.Size*2 && strings.Trim(digest, "0123456789abcdef") == "" {
			return "sha256:" + digest, entries, nil
		}
	}
}

// TakeArchive sees that the image of an archive is on the engine.
func (b *Backend) TakeArchive(ctx context.Context, a Archive) error {
	engine, err := b.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := engine.Image(ctx, a.Image); !errors.Is(err, ErrNotFound) {
		return b.imageError(err)
	}
	f, err := os.Open(a.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	b.log.Info("the archive's image is not on the engine and is loaded", "archive", a.Path, "image", a.Image)
	if !a.Saved {
		_, err := engine.Import(ctx, a.Image, f)
		return b.imageError(err)
	}
	names, err := engine.Load(ctx, f)
	if err != nil {
		return b.imageError(err)
	}
	if _, err := engine.Image(ctx, a.Image); errors.Is(err, ErrNotFound) {
		return &sandbox.Problem{
			Field: "image-archive", What: fmt.Sprintf("archive %q", a.Path), Rule: fmt.Sprintf("the engine has loaded it as %q and not as %s", names, a.Image),
			Remedy: "use that name with --image", Err: sandbox.ErrUnavailable,
		}
	}
	return nil
}

// ImportImage makes an image of a root file system in a tar archive.
func (b *Backend) ImportImage(ctx context.Context, name string, rootfs io.Reader) (id string, err error) {
	engine, err := b.connect(ctx)
	if err != nil {
		return "", err
	}
	id, err = engine.Import(ctx, name, rootfs)
	return id, b.imageError(err)
}

// LoadImages takes the images of an archive that an engine has saved, and tells their names.
func (b *Backend) LoadImages(ctx context.Context, archive io.Reader) ([]string, error) {
	engine, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	names, err := engine.Load(ctx, archive)
	return names, b.imageError(err)
}

// PullImage fetches an image from its registry. progress is told lines for people.
func (b *Backend) PullImage(ctx context.Context, name string, progress func(line string)) error {
	engine, err := b.connect(ctx)
	if err != nil {
		return err
	}
	return b.imageError(engine.Pull(ctx, name, progress))
}

// imageError makes an engine's refusal about an image one for people.
func (b *Backend) imageError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, ErrUnreachable) {
		return b.unreachable(err)
	}
	return &sandbox.Problem{
		Field: "image", What: "the " + b.opts.Name + " engine refuses", Rule: err.Error(), Remedy: "see: " + b.opts.Name + " images",
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
}
