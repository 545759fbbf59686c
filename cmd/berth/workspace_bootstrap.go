package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

func newWorkspaceBootstrap(a *app, w *workspaceFlags) *cobra.Command {
	var jsonOut, private, noContent bool
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Show what a session of the agent would start with",
		Long: `Show what a session of the agent would start with: the root documents in their order, then
what the patterns of the workspace match. Each file stands under a line with its name and
what became of it: missing, excluded and why, cut and by which bound, or refused.

Protected memory (MEMORY.md, under any name that leads to it) is left out unless the session
is --private. The exit code is 1 when a file exists and cannot be read.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return w.withWorkspace(cmd.Context(), a, func(ctx context.Context, b *boundWorkspace) error {
				boot, err := b.all.LoadBootstrap(ctx, b.dir, remoteworkspace.BootstrapConfig{
					Documents: b.rootDocuments(), Patterns: b.Patterns, Protected: b.Protected, IncludeProtected: private, MaxFile: b.MaxDocument,
				})
				if err != nil {
					return err
				}
				return a.printBootstrap(boot, jsonOut, noContent)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&private, "private", false, "a session of the owner alone: with protected memory")
	f.BoolVar(&noContent, "no-content", false, "without the content of the files")
	f.BoolVar(&jsonOut, "json", false, "one JSON object per file")
	return cmd
}

// rootDocuments are those of the list that lie at the root; nil means the usual ones.
func (b *boundWorkspace) rootDocuments() []string {
	if b.Documents == nil {
		return nil
	}
	roots := []string{}
	for _, d := range b.Documents {
		if !strings.Contains(d, "/") {
			roots = append(roots, d)
		}
	}
	return roots
}

// bootstrapJSON is a file of a session's start in JSON.
type bootstrapJSON struct {
	Name                  string               `json:"name"`
	Pattern               string               `json:"pattern,omitempty"`
	Status                string               `json:"status"`
	Reason                string               `json:"reason,omitempty"`
	Problem               string               `json:"problem,omitempty"`
	ResolvedPath          string               `json:"resolvedPath,omitempty"`
	WorkspaceRelativePath string               `json:"workspaceRelativePath,omitempty"`
	Size                  int64                `json:"size"`
	SHA256                string               `json:"sha256,omitempty"`
	Cut                   *remoteworkspace.Cut `json:"cut,omitempty"`
	Content               *textJSON            `json:"content,omitempty"`
}

func newBootstrapJSON(f remoteworkspace.BootstrapFile, noContent bool) bootstrapJSON {
	j := bootstrapJSON{Name: fsbridge.DisplayPath(f.Name), Pattern: f.Pattern, Status: string(f.Status), Reason: f.Reason, Cut: f.Cut}
	if f.Err != nil {
		j.Problem = f.Err.Error()
	}
	if s := f.Source; s != nil {
		j.ResolvedPath, j.WorkspaceRelativePath = fsbridge.DisplayPath(s.ResolvedPath), fsbridge.DisplayPath(s.WorkspaceRelativePath)
		j.Size, j.SHA256 = s.Size, string(s.Hash)
	}
	if f.Status == remoteworkspace.FileLoaded && !noContent {
		content := newTextJSON(f.Content, int64(len(f.Content)), 0)
		j.Content = &content
	}
	return j
}

// bootstrapLine says what became of a file.
func bootstrapLine(f remoteworkspace.BootstrapFile) string {
	s := string(f.Status)
	switch {
	case f.Err != nil:
		s += ": " + f.Err.Error()
	case f.Reason != "":
		s += ": " + f.Reason
	case f.Cut != nil:
		s = fmt.Sprintf("the first %d of %d bytes, by the bound for one %s", f.Cut.Kept, f.Cut.Size, f.Cut.By)
		if f.Cut.By == "total" {
			s = fmt.Sprintf("the first %d of %d bytes, by the bound for all files", f.Cut.Kept, f.Cut.Size)
		}
	case f.Status == remoteworkspace.FileLoaded:
		s = fmt.Sprintf("%d bytes", len(f.Content))
	}
	if f.Source != nil && f.Source.WorkspaceRelativePath != f.Name {
		s += "; it lies at " + f.Source.ResolvedPath
	}
	return s
}

func (a *app) printBootstrap(b remoteworkspace.Bootstrap, jsonOut, noContent bool) error {
	for _, f := range b.Files {
		if jsonOut {
			if err := writeJSON(a.stdout, newBootstrapJSON(f, noContent)); err != nil {
				return err
			}
			continue
		}
		text := fmt.Sprintf("===== %s: %s =====\n", printable(f.Name), printable(bootstrapLine(f)))
		if f.Status == remoteworkspace.FileLoaded && !noContent {
			text += string(f.Content)
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
		}
		if _, err := fmt.Fprint(a.stdout, text); err != nil {
			return err
		}
	}
	if n := len(b.Refused()); n > 0 {
		return withHint(exitFailure, fmt.Errorf("files that exist and cannot be read: %d", n), "see what is told about each; look at one with: berth workspace get")
	}
	return nil
}
