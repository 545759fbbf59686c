package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/podman"
)

// imager is a backend that has images.
type imager interface {
	sandbox.Backend
	TakeArchive(ctx context.Context, a container.Archive) error
	ImportImage(ctx context.Context, name string, rootfs io.Reader) (id string, err error)
	LoadImages(ctx context.Context, archive io.Reader) ([]string, error)
	FetchImage(ctx context.Context, name string, progress func(line string)) error
	Close() error
	PullImage(ctx context.Context, name string, progress func(line string)) error
}

// openImager opens a backend that has images.
func (a *app) openImager(name, engine string) (imager, error) {
	b, err := a.openBackend(name, engine, a.logger())
	if err != nil {
		return nil, err
	}
	i, ok := b.(imager)
	if !ok {
		return nil, &sandbox.Problem{
			Field: "backend", What: fmt.Sprintf("backend %q", name), Rule: "it has no images: it runs the programs of this machine",
			Remedy: "choose a container engine: --backend docker", Err: sandbox.ErrRefused,
		}
	}
	return i, nil
}

// bringImage sees that the image of a sandbox is on the engine, and shows how it goes.
func (a *app) bringImage(ctx context.Context, t *target, backend string, c sandbox.Config) error {
	if c.Image == "" {
		return nil
	}
	b, err := a.openBackend(backend, c.Engine, a.logger())
	if err != nil {
		return err
	}
	i, ok := b.(imager)
	if !ok {
		return nil // it refuses the image itself
	}
	defer i.Close()
	if t.found != nil {
		return i.TakeArchive(ctx, *t.found)
	}
	return i.FetchImage(ctx, c.Image, func(line string) { fmt.Fprintln(a.stderr, line) })
}

// newImage is "berth image".
func newImage(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Bring images to a container engine",
		Args:  noCommand,
		RunE:  help,
	}
	cmd.AddCommand(newImageImport(a), newImageLoad(a), newImagePull(a))
	return cmd
}

// imageBackend adds --backend for a command about images.
func imageBackend(cmd *cobra.Command) *string {
	return cmd.Flags().String("backend", "", "the engine: docker or podman (default $BERTH_BACKEND, or docker)")
}

// engineWord is the backend that a command about images means.
func (a *app) engineWord(flag string) string {
	if flag != "" {
		return flag
	}
	if chosen := a.getenv("BERTH_BACKEND"); chosen == podman.Name {
		return chosen
	}
	return docker.Name
}

func newImageImport(a *app) *cobra.Command {
	var backend *string
	cmd := &cobra.Command{
		Use:   "import DIR|TAR NAME",
		Short: "Make an image of a root file system",
		Long: "Make an image of a root file system: a directory, or a tar archive of one, compressed or not.\n" +
			"A directory keeps owners and modes, so it is best read as root.",
		Example: "  debootstrap --variant=minbase stable ./root && berth image import ./root mine:1\n  berth image import rootfs.tar.gz mine:1",
		Args:    exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.openImager(a.engineWord(*backend), "")
			if err != nil {
				return err
			}
			defer b.Close()
			src, err := openRootfs(args[0])
			if err != nil {
				return &sandbox.Problem{
					What: fmt.Sprintf("root file system %q", args[0]), Rule: err.Error(), Remedy: "name a directory, or a tar archive",
					Err: errors.Join(sandbox.ErrRefused, err),
				}
			}
			defer src.Close()
			bar := a.progress(args[0], -1)
			id, err := b.ImportImage(cmd.Context(), args[1], io.TeeReader(src, bar))
			if err = errors.Join(err, bar.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, id)
			return err
		},
	}
	backend = imageBackend(cmd)
	return cmd
}

func newImageLoad(a *app) *cobra.Command {
	var backend *string
	cmd := &cobra.Command{
		Use:   "load FILE",
		Short: "Load images that docker save or podman save has written",
		Long:  "Load images that docker save or podman save has written, and print their names. \"-\" is standard input.",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.openImager(a.engineWord(*backend), "")
			if err != nil {
				return err
			}
			defer b.Close()
			src := io.NopCloser(a.stdin)
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				src = f
			}
			defer src.Close()
			bar := a.progress(args[0], -1)
			names, err := b.LoadImages(cmd.Context(), io.TeeReader(src, bar))
			err = errors.Join(err, bar.Close())
			for _, name := range names {
				_, e := fmt.Fprintln(a.stdout, name)
				err = errors.Join(err, e)
			}
			return err
		},
	}
	backend = imageBackend(cmd)
	return cmd
}

func newImagePull(a *app) *cobra.Command {
	var backend *string
	cmd := &cobra.Command{
		Use:   "pull NAME",
		Short: "Fetch an image from its registry",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.openImager(a.engineWord(*backend), "")
			if err != nil {
				return err
			}
			defer b.Close()
			return b.PullImage(cmd.Context(), args[0], func(line string) { fmt.Fprintln(a.stderr, line) })
		},
	}
	backend = imageBackend(cmd)
	return cmd
}

// openRootfs gives a root file system as a tar archive.
func openRootfs(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, errors.Join(err, f.Close())
	case info.Mode().IsRegular():
		return f, nil
	case !info.IsDir():
		return nil, errors.Join(errors.New("it is neither a directory nor a file"), f.Close())
	}
	_ = f.Close() // the directory is read by name
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.AddFS(os.DirFS(path))
		_ = w.CloseWithError(errors.Join(err, t.Close()))
	}()
	return r, nil
}
