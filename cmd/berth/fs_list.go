package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
)

func newFSLs(a *app, t *target) *cobra.Command {
	var jsonOut, long bool
	cmd := &cobra.Command{
		Use:   "ls [PATH...]",
		Short: "List directories, sorted by name; dot files are always shown",
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(orWorkspace(args))
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				return a.eachPath(paths, func(p string) error {
					entries, err := a.listOne(ctx, b, p)
					if err != nil {
						return err
					}
					if len(paths) > 1 && !jsonOut {
						fmt.Fprintf(a.stdout, "%s:\n", fsbridge.DisplayPath(p))
					}
					return a.printEntries(p, entries, jsonOut, long)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per entry")
	cmd.Flags().BoolVarP(&long, "long", "l", false, "type, mode, size and time as well")
	return cmd
}

// orWorkspace is the workspace where no path is given.
func orWorkspace(args []string) []string {
	if len(args) == 0 {
		return []string{"."}
	}
	return args
}

// listOne lists a directory; anything else lists itself.
func (a *app) listOne(ctx context.Context, b fsbridge.Bridge, p string) ([]fsbridge.DirEntry, error) {
	info, err := b.Stat(ctx, p)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return fsbridge.ReadDirectory(ctx, b, p)
	}
	info.Name = path.Base(p)
	return []fsbridge.DirEntry{{Name: info.Name, Info: info}}, nil
}

func (a *app) printEntries(dir string, entries []fsbridge.DirEntry, jsonOut, long bool) error {
	if jsonOut {
		for _, e := range entries {
			f := newFileJSON(path.Join(dir, e.Name), e.Info, e.LinkTarget)
			out := struct {
				Name string `json:"name"`
				fileJSON
			}{fsbridge.DisplayPath(e.Name), f}
			if err := writeJSON(a.stdout, out); err != nil {
				return err
			}
		}
		return nil
	}
	width := 0
	for _, e := range entries {
		width = max(width, len(strconv.FormatInt(e.Info.Size, 10)))
	}
	for _, e := range entries {
		name := fsbridge.DisplayPath(e.Name)
		if long {
			name = fmt.Sprintf("%s %*d %s %s%s", longMode(e.Info), width, e.Info.Size,
				e.Info.ModTime.UTC().Format("2006-01-02 15:04"), name, arrow(e.LinkTarget))
		} else if e.Info.IsDir() {
			name += "/"
		}
		if _, err := fmt.Fprintln(a.stdout, name); err != nil {
			return err
		}
	}
	return nil
}

func newFSTree(a *app, t *target) *cobra.Command {
	var jsonOut, hash bool
	opts := fsbridge.WalkOptions{}
	cmd := &cobra.Command{
		Use:   "tree [PATH]",
		Short: "Everything below a directory; links are shown, not followed",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(orWorkspace(args))
			if err != nil {
				return err
			}
			opts.Hash = hash
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				var dirs, files, bad int
				err := fsbridge.Walk(ctx, b, paths[0], opts, func(e fsbridge.WalkEntry) error {
					if e.Err != nil {
						bad++
					} else if e.Info.IsDir() {
						dirs++
					} else {
						files++
					}
					return a.printWalk(paths[0], e, jsonOut)
				})
				if err != nil {
					return err
				}
				if !jsonOut {
					fmt.Fprintf(a.stdout, "%d directories, %d files\n", dirs, files)
				}
				if bad > 0 {
					return withHint(exitFailure, fmt.Errorf("%d entries could not be read", bad), "they are marked in the listing; check owner and mode")
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&jsonOut, "json", false, "one JSON object per entry")
	f.BoolVar(&hash, "hash", false, "add the SHA-256 of regular files")
	f.IntVar(&opts.MaxDepth, "depth", 0, "go so deep; 0 means all the way")
	f.IntVar(&opts.MaxEntries, "max", 0, "fail after so many entries; 0 means 10 million")
	f.StringSliceVar(&opts.SkipDirs, "skip", nil, "names of directories that are shown and not entered, such as .git")
	return cmd
}

func (a *app) printWalk(root string, e fsbridge.WalkEntry, jsonOut bool) error {
	if jsonOut {
		f := newFileJSON(path.Join(root, e.Path), e.Info, "")
		f.SHA256 = string(e.Digest)
		if e.Err != nil {
			f.Error = e.Err.Error()
		}
		return writeJSON(a.stdout, f)
	}
	depth := strings.Count(e.Path, "/")
	name := fsbridge.DisplayPath(path.Base(e.Path))
	if e.Info.IsDir() {
		name += "/"
	}
	if e.Digest != "" {
		name += "  " + string(e.Digest)
	}
	if e.Err != nil {
		name += "  (" + printable(firstLine(e.Err.Error())) + ")"
	}
	_, err := fmt.Fprintln(a.stdout, strings.Repeat("  ", depth)+name)
	return err
}

func newFSWatch(a *app, t *target) *cobra.Command {
	var jsonOut bool
	var count int
	opts := fsbridge.WatchOptions{}
	cmd := &cobra.Command{
		Use:   "watch [PATH]",
		Short: "Report changes below a directory until interrupted",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := t.paths(orWorkspace(args))
			if err != nil {
				return err
			}
			return a.withBridge(cmd.Context(), t, func(ctx context.Context, b fsbridge.Bridge) error {
				w, err := fsbridge.WatchDirectory(ctx, b, paths[0], opts)
				if err != nil {
					return err
				}
				defer w.Close()
				fmt.Fprintf(a.stderr, "berth: watching %s\n", fsbridge.DisplayPath(paths[0]))
				for seen := 0; count == 0 || seen < count; seen++ {
					select {
					case <-ctx.Done():
						return nil
					case e, ok := <-w.Events():
						if !ok {
							return w.Err()
						}
						if err := a.printEvent(e, jsonOut); err != nil {
							return err
						}
					}
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&jsonOut, "json", false, "one JSON object per event")
	f.BoolVarP(&opts.Recursive, "recursive", "r", false, "directories below as well, new ones included")
	f.IntVar(&count, "count", 0, "stop after so many events; 0 means never")
	return cmd
}

func (a *app) printEvent(e fsbridge.Event, jsonOut bool) error {
	if !jsonOut {
		_, err := fmt.Fprintf(a.stdout, "%-8s %s\n", e.Kind, fsbridge.DisplayPath(e.Path))
		return err
	}
	display, b64 := reversible(e.Path)
	return writeJSON(a.stdout, struct {
		Kind       fsbridge.EventKind `json:"kind"`
		Path       string             `json:"path"`
		PathBase64 string             `json:"pathBase64,omitempty"`
		Dir        bool               `json:"dir"`
		Time       string             `json:"time"`
	}{e.Kind, display, b64, e.Dir, e.Time.UTC().Format("2006-01-02T15:04:05.000000Z")})
}
