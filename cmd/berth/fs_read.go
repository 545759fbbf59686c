package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
)

func newFSStat(a *app, t *target) *cobra.Command {
	var follow, jsonOut bool
	cmd := &cobra.Command{
		Use:   "stat PATH...",
		Short: "Describe files; links are described themselves unless --follow",
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error {
					stat := fsbridge.Lstat
					if follow {
						stat = func(ctx context.Context, b fsbridge.Bridge, p string) (fsbridge.FileInfo, error) {
							return b.Stat(ctx, p)
						}
					}
					info, err := stat(ctx, b, p)
					if err != nil {
						return err
					}
					var link string
					if info.Type == fsbridge.TypeSymlink {
						if link, err = fsbridge.ReadLink(ctx, b, p); err != nil {
							return err
						}
					}
					if jsonOut {
						return writeJSON(a.stdout, newFileJSON(p, info, link))
					}
					_, err = fmt.Fprintf(a.stdout, "%s  %s  %d bytes  %s  uid %d gid %d  links %d  %s%s\n",
						longMode(info), info.Type, info.Size, info.ModTime.UTC().Format("2006-01-02 15:04:05Z"),
						info.UID, info.GID, info.Nlink, fsbridge.DisplayPath(p), arrow(link))
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "L", false, "describe what a link leads to")
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per file")
	return cmd
}

// arrow shows a link's target.
func arrow(target string) string {
	if target == "" {
		return ""
	}
	return " -> " + fsbridge.DisplayPath(target)
}

func newFSCat(a *app, t *target) *cobra.Command {
	var off, n int64
	var source bool
	cmd := &cobra.Command{
		Use:   "cat PATH...",
		Short: "Write the content of files to standard output, byte for byte",
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			if off < 0 || n < -1 {
				return &usageError{errors.New("--offset and --length must not be negative")}
			}
			ranged := cmd.Flags().Changed("offset") || cmd.Flags().Changed("length")
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error {
					switch {
					case source:
						return a.catSource(ctx, b, p)
					case ranged:
						return a.catRange(ctx, b, p, off, n)
					}
					return a.catAll(ctx, b, p)
				})
			})
		},
	}
	cmd.Flags().Int64Var(&off, "offset", 0, "start at this byte")
	cmd.Flags().Int64Var(&n, "length", -1, "write at most so many bytes; -1 means to the end")
	cmd.Flags().BoolVar(&source, "source", false, "pinned read: one JSON object with content and true location of the file")
	return cmd
}

func (a *app) catAll(ctx context.Context, b fsbridge.Bridge, p string) error {
	r, info, err := fsbridge.OpenReader(ctx, b, p)
	if err != nil {
		return err
	}
	defer r.Close()
	bar := a.progress("reading "+p, info.Size)
	defer bar.Close()
	_, err = io.Copy(io.MultiWriter(a.stdout, bar), r)
	return err
}

func (a *app) catRange(ctx context.Context, b fsbridge.Bridge, p string, off, n int64) error {
	const chunk = 1 << 20
	for n != 0 {
		want := int64(chunk)
		if n > 0 {
			want = min(want, n)
		}
		data, err := fsbridge.ReadRange(ctx, b, p, off, want)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
		if _, err := a.stdout.Write(data); err != nil {
			return err
		}
		off += int64(len(data))
		if n > 0 {
			n -= int64(len(data))
		}
	}
	return nil
}

func (a *app) catSource(ctx context.Context, b fsbridge.Bridge, p string) error {
	f, err := fsbridge.ReadFileWithSource(ctx, b, p)
	if err != nil {
		return err
	}
	out := struct {
		fileJSON
		ResolvedPath          string   `json:"resolvedPath"`
		WorkspaceRelativePath string   `json:"workspaceRelativePath,omitempty"`
		Content               textJSON `json:"content"`
	}{
		fileJSON:              newFileJSON(p, f.Info, ""),
		ResolvedPath:          fsbridge.DisplayPath(f.ResolvedPath),
		WorkspaceRelativePath: fsbridge.DisplayPath(f.WorkspaceRelativePath),
		Content:               newTextJSON(f.Data, int64(len(f.Data)), 0),
	}
	return writeJSON(a.stdout, out)
}

func newFSHash(a *app, t *target) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "hash PATH...",
		Short: "SHA-256 of files, computed where they are",
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(args)
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error {
					h, err := fsbridge.HashFile(ctx, b, p)
					if err != nil {
						return err
					}
					if jsonOut {
						display, b64 := reversible(p)
						return writeJSON(a.stdout, map[string]any{"path": display, "pathBase64": b64, "sha256": h.Digest, "size": h.Size})
					}
					_, err = fmt.Fprintf(a.stdout, "%s  %s\n", h.Digest, fsbridge.DisplayPath(p))
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per file")
	return cmd
}

func newFSGlob(a *app, t *target) *cobra.Command {
	var jsonOut bool
	var limit int
	cmd := &cobra.Command{
		Use:   "glob PATTERN...",
		Short: `Expand patterns: * ? [a-z] ** {a,b}`,
		Args:  atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(args, func(pattern string) error {
					found, err := fsbridge.Glob(ctx, b, pattern, fsbridge.GlobOptions{MaxMatches: limit})
					if err != nil {
						return err
					}
					for _, p := range found {
						if jsonOut {
							display, b64 := reversible(p)
							err = writeJSON(a.stdout, map[string]string{"path": display, "pathBase64": b64})
						} else {
							_, err = fmt.Fprintln(a.stdout, fsbridge.DisplayPath(p))
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per match")
	cmd.Flags().IntVar(&limit, "max", 0, "fail when there are more matches; 0 means 100,000")
	return cmd
}

// parseMode reads a permission: octal digits, as chmod takes them. Anything that
// could be decimal by mistake is refused by its digits 8 and 9.
func parseMode(s string) (fsbridge.Mode, error) {
	v, err := strconv.ParseUint(s, 8, 32)
	if err != nil || v > uint64(fsbridge.ModeAll) || len(s) < 3 || len(s) > 5 {
		return 0, &usageError{fmt.Errorf("%q is not a mode; give three or four octal digits such as 0644", s)}
	}
	return fsbridge.Mode(v), nil
}
