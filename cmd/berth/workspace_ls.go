package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/remoteworkspace"
)

// documentJSON is a document in JSON.
type documentJSON struct {
	Name    string     `json:"name"`
	Missing bool       `json:"missing"`
	Size    int64      `json:"size"`
	ModTime *time.Time `json:"modTime,omitempty"`
	SHA256  string     `json:"sha256,omitempty"`
	Problem string     `json:"problem,omitempty"`
	Created *bool      `json:"created,omitempty"`
	Content *textJSON  `json:"content,omitempty"`
}

func newDocumentJSON(d remoteworkspace.Document) documentJSON {
	j := documentJSON{Name: fsbridge.DisplayPath(d.Name), Missing: d.Missing, Size: d.Size, SHA256: string(d.Hash)}
	if !d.ModTime.IsZero() {
		at := d.ModTime.UTC()
		j.ModTime = &at
	}
	if d.Problem != nil {
		j.Problem = d.Problem.Error()
	}
	return j
}

func newWorkspaceLs(a *app, w *workspaceFlags) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the documents of a workspace, or the configured workspaces without --workspace",
		Long: `List the documents of a workspace with size and SHA-256: those of its list, missing ones
too. Without --workspace, list the workspaces that the configuration binds.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.name == "" {
				return a.listBindings(w, jsonOut)
			}
			return w.withWorkspace(cmd.Context(), a, func(ctx context.Context, b *boundWorkspace) error {
				list, err := b.docs.List(ctx, b.dir)
				if err != nil {
					return err
				}
				return a.printDocuments(list, jsonOut)
			})
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per document or workspace")
	return cmd
}

func (a *app) printDocuments(list []remoteworkspace.Document, jsonOut bool) error {
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		if jsonOut {
			if err := writeJSON(a.stdout, newDocumentJSON(d)); err != nil {
				return err
			}
			continue
		}
		row := []string{d.Name, fmt.Sprint(d.Size), d.ModTime.Local().Format(time.DateTime), string(d.Hash)}
		switch {
		case d.Missing:
			row = []string{d.Name, "-", "missing", ""}
		case d.Problem != nil:
			row[3] = d.Problem.Error()
		}
		rows = append(rows, row)
	}
	if jsonOut {
		return nil
	}
	return table(a.stdout, []string{"DOCUMENT", "SIZE", "MODIFIED", "SHA-256"}, rows)
}

// listBindings lists the configured workspaces; it connects to none.
func (a *app) listBindings(w *workspaceFlags, jsonOut bool) error {
	file, err := w.file(a, "")
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, name := range file.Workspaces() {
		eff, err := file.Merge(config.Request{Binding: name}, defaultConfig)
		if err != nil {
			return err
		}
		settings, err := file.Workspace(name)
		if err != nil {
			return err
		}
		if settings.Documents == nil {
			settings.Documents = remoteworkspace.DefaultDocuments()
		}
		if jsonOut {
			if err := writeJSON(a.stdout, map[string]any{
				"name": name, "backend": eff.Backend, "workspace": eff.Workspace, "documents": settings.Documents, "patterns": append([]string{}, settings.Patterns...),
			}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{name, eff.Backend, eff.Workspace, strings.Join(settings.Documents, " ")})
	}
	if jsonOut {
		return nil
	}
	return table(a.stdout, []string{"NAME", "BACKEND", "WORKSPACE", "DOCUMENTS"}, rows)
}
