package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
)

// precondition is the pair of flags every change of content takes.
type precondition struct {
	hash   string
	absent bool
}

func (p *precondition) register(cmd *cobra.Command, withAbsent bool) {
	cmd.Flags().StringVar(&p.hash, "if-hash", "", "change only a file whose SHA-256 is this (lower-case hexadecimal)")
	if withAbsent {
		cmd.Flags().BoolVar(&p.absent, "if-absent", false, "create only; an existing file is a conflict")
	}
}

func (p *precondition) value() (fsbridge.Precondition, error) {
	if p.hash != "" && p.absent {
		return fsbridge.Precondition{}, &usageError{errors.New("--if-hash and --if-absent exclude each other")}
	}
	if p.hash != "" && !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.hash) {
		return fsbridge.Precondition{}, &usageError{fmt.Errorf("--if-hash %q is not a SHA-256 in lower-case hexadecimal", p.hash)}
	}
	return fsbridge.Precondition{Hash: fsbridge.Digest(p.hash), Absent: p.absent}, nil
}

func newFSPut(a *app, t *target) *cobra.Command {
	var (
		from, mode             string
		jsonOut, appnd, noDirs bool
		sync                   bool
		pre                    precondition
	)
	cmd := &cobra.Command{
		Use:   "put PATH",
		Short: "Write a file atomically from standard input or --from FILE",
		Long: `Write a file atomically from standard input or --from FILE.

A reader sees the old content or the new one, never a mixture; when the write
fails the old file is whole. An existing file keeps its mode. Without --if-hash or
--if-absent the last writer wins.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			opts := fsbridge.WriteOptions{NoParents: noDirs, Sync: sync}
			if mode != "" {
				if opts.Mode, err = parseMode(mode); err != nil {
					return err
				}
			}
			if opts.If, err = pre.value(); err != nil {
				return err
			}
			if appnd && (mode != "" || pre != (precondition{})) {
				return &usageError{errors.New("--append goes with neither --mode nor a precondition")}
			}
			in, size, done, err := a.source(from)
			if err != nil {
				return err
			}
			defer done()
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				bar := a.progress("writing "+paths[0], size)
				defer bar.Close()
				if appnd {
					return appendAll(ctx, b, paths[0], io.TeeReader(in, bar))
				}
				res, err := fsbridge.WriteStream(ctx, b, paths[0], io.TeeReader(in, bar), opts)
				if err != nil {
					return err
				}
				if jsonOut {
					display, b64 := reversible(paths[0])
					return writeJSON(a.stdout, map[string]any{"path": display, "pathBase64": b64, "sha256": res.Digest, "size": res.Size, "created": res.Created})
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "take the content from this file of the host instead of standard input")
	f.StringVar(&mode, "mode", "", "permission in octal, such as 0755")
	f.BoolVar(&appnd, "append", false, "add to the end instead (not atomic towards readers)")
	f.BoolVar(&noDirs, "no-parents", false, "do not create missing directories")
	f.BoolVar(&sync, "sync", false, "return when the content is on stable storage")
	f.BoolVar(&jsonOut, "json", false, "print path, hash and size as JSON")
	pre.register(cmd, true)
	return cmd
}

// source opens what put reads. size is -1 where it is not known.
func (a *app) source(from string) (r io.Reader, size int64, done func(), err error) {
	if from == "" || from == "-" {
		return a.stdin, -1, func() {}, nil
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, 0, nil, withHint(exitRefused, err, "--from names a file of this machine")
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", from)
	}
	if err != nil {
		f.Close()
		return nil, 0, nil, withHint(exitRefused, err, "--from takes a regular file; pipe anything else into standard input")
	}
	return f, st.Size(), func() { f.Close() }, nil
}

// appendAll appends in pieces, each of which lands whole.
func appendAll(ctx context.Context, b fsbridge.Bridge, path string, r io.Reader) error {
	buf := make([]byte, 1<<20)
	for first := true; ; first = false {
		n, err := io.ReadFull(r, buf)
		if n > 0 || first {
			if err := fsbridge.AppendFile(ctx, b, path, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func newFSMkdir(a *app, t *target) *cobra.Command {
	var mode string
	opts := fsbridge.MkdirOptions{}
	cmd := &cobra.Command{
		Use:   "mkdir PATH...",
		Short: "Make directories",
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			if mode != "" {
				if opts.Mode, err = parseMode(mode); err != nil {
					return err
				}
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error { return fsbridge.Mkdir(ctx, b, p, opts) })
			})
		},
	}
	cmd.Flags().BoolVarP(&opts.Parents, "parents", "p", false, "make missing parents; an existing directory is no error")
	cmd.Flags().StringVar(&mode, "mode", "", "permission in octal, such as 0700")
	return cmd
}

func newFSMv(a *app, t *target) *cobra.Command {
	opts := fsbridge.RenameOptions{}
	cmd := &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Rename; NEW is the new name itself, never a directory to move into",
		Args:  exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return fsbridge.Rename(ctx, b, paths[0], paths[1], opts)
			})
		},
	}
	cmd.Flags().BoolVarP(&opts.NoReplace, "no-replace", "n", false, "fail when NEW exists")
	cmd.Flags().BoolVarP(&opts.Parents, "parents", "p", false, "make missing parents of NEW")
	return cmd
}

func newFSCp(a *app, t *target) *cobra.Command {
	opts := fsbridge.CopyOptions{}
	cmd := &cobra.Command{
		Use:   "cp SOURCE COPY",
		Short: "Copy inside the sandbox; to and from the host use put and cat",
		Args:  exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				bar := a.progress("copying "+paths[0], -1)
				defer bar.Close()
				return fsbridge.Copy(ctx, b, paths[0], paths[1], opts)
			})
		},
	}
	cmd.Flags().BoolVarP(&opts.Recursive, "recursive", "r", false, "copy a directory with its content")
	cmd.Flags().BoolVarP(&opts.NoReplace, "no-replace", "n", false, "fail when COPY exists")
	return cmd
}

func newFSRm(a *app, t *target) *cobra.Command {
	var pre precondition
	opts := fsbridge.RemoveOptions{}
	cmd := &cobra.Command{
		Use:   "rm PATH...",
		Short: "Remove files, links and directories; links are never followed",
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			if opts.If, err = pre.value(); err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error { return fsbridge.Remove(ctx, b, p, opts) })
			})
		},
	}
	cmd.Flags().BoolVarP(&opts.Recursive, "recursive", "r", false, "remove a directory with its content")
	cmd.Flags().BoolVarP(&opts.IgnoreMissing, "force", "f", false, "a missing path is no error")
	pre.register(cmd, false)
	return cmd
}

func newFSLn(a *app, t *target) *cobra.Command {
	opts := fsbridge.SymlinkOptions{}
	cmd := &cobra.Command{
		Use:   "ln TARGET LINK",
		Short: "Make a symbolic link whose target stays inside the mounts",
		Args:  exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return fsbridge.Symlink(ctx, b, paths[0], paths[1], opts)
			})
		},
	}
	cmd.Flags().BoolVarP(&opts.Replace, "replace", "f", false, "replace an existing file or link")
	return cmd
}

func newFSChmod(a *app, t *target) *cobra.Command {
	return &cobra.Command{
		Use:   "chmod MODE PATH...",
		Short: "Set permission bits, in octal",
		Args:  atLeast(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := parseMode(args[0])
			if err != nil {
				return err
			}
			paths, err := t.paths(args[1:])
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error { return fsbridge.Chmod(ctx, b, p, mode) })
			})
		},
	}
}
