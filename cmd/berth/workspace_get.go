package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

func newWorkspaceGet(a *app, w *workspaceFlags) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Write a document to standard output, byte for byte",
		Long: `Write a document to standard output, byte for byte. With --json, one object with its
SHA-256, which "set --expected-hash" takes. A missing document is exit code 1.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.withWorkspace(cmd.Context(), a, func(ctx context.Context, b *boundWorkspace) error {
				d, err := b.docs.Get(ctx, remoteworkspace.GetRequest{Dir: b.dir, Name: args[0]})
				if err != nil {
					return err
				}
				return a.printDocument(d, jsonOut)
			})
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object with content and hash")
	return cmd
}

func (a *app) printDocument(d remoteworkspace.Document, jsonOut bool) error {
	if jsonOut {
		j := newDocumentJSON(d)
		if !d.Missing {
			content := newTextJSON(d.Content, d.Size, 0)
			j.Content = &content
		}
		if err := writeJSON(a.stdout, j); err != nil {
			return err
		}
	}
	switch {
	case d.Missing && jsonOut:
		return commandExit(exitFailure)
	case d.Missing:
		return withHint(exitFailure, fmt.Errorf("%s: there is no such document yet", fsbridge.DisplayPath(d.Name)), "make it with: berth workspace set "+fsbridge.DisplayPath(d.Name))
	case jsonOut:
		return nil
	}
	_, err := a.stdout.Write(d.Content)
	return err
}

func newWorkspaceSet(a *app, w *workspaceFlags) *cobra.Command {
	var expected, from string
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Save a document from standard input or --file FILE",
		Long: `Save a document as a whole, from standard input or --file FILE. A reader sees the old
content or the new one.

With --expected-hash the save is refused when the document's SHA-256 is another one, and
the message has the present one; an empty value demands that there is no document yet.
It is a check and no lock: a program on that machine may write in between. When the
connection fails during the save, nobody knows whether it was done: read it again.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := remoteworkspace.SetRequest{Name: args[0]}
			if cmd.Flags().Changed("expected-hash") {
				r.ExpectedHash = &expected
			}
			return w.withWorkspace(cmd.Context(), a, func(ctx context.Context, b *boundWorkspace) error {
				var err error
				if r.Content, err = a.wholeSource(from, b.MaxDocument); err != nil {
					return err
				}
				r.Dir = b.dir
				res, err := b.docs.Set(ctx, r)
				if err != nil || !jsonOut {
					return err
				}
				j := newDocumentJSON(res.Document)
				j.Created = &res.Created
				return writeJSON(a.stdout, j)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&expected, "expected-hash", "", "SHA-256 that the present document must have; empty: there must be none")
	f.StringVar(&from, "file", "", "take the content from this file of the host instead of standard input")
	f.BoolVar(&jsonOut, "json", false, "one JSON object: size, hash, created")
	return cmd
}

// wholeSource reads new content, one byte beyond the limit at most: what is larger is
// refused by the save.
func (a *app) wholeSource(from string, limit int64) ([]byte, error) {
	if limit == 0 {
		limit = remoteworkspace.DefaultMaxDocument
	}
	in := a.stdin
	if from != "" && from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return nil, withHint(exitRefused, err, "--file names a file of this machine")
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, limit+1))
}

func newWorkspaceIdentity(a *app, w *workspaceFlags) *cobra.Command {
	var jsonOut bool
	var values remoteworkspace.Identity
	fields := []struct {
		flag, usage string
		value       *string
		patch       func(*remoteworkspace.IdentityPatch) **string
	}{
		{"name", "what the agent is called", &values.Name, func(p *remoteworkspace.IdentityPatch) **string { return &p.Name }},
		{"creature", "what it is", &values.Creature, func(p *remoteworkspace.IdentityPatch) **string { return &p.Creature }},
		{"vibe", "how it comes across", &values.Vibe, func(p *remoteworkspace.IdentityPatch) **string { return &p.Vibe }},
		{"theme", "its theme", &values.Theme, func(p *remoteworkspace.IdentityPatch) **string { return &p.Theme }},
		{"emoji", "its emoji", &values.Emoji, func(p *remoteworkspace.IdentityPatch) **string { return &p.Emoji }},
		{"avatar", "its picture: a path below the workspace, an http(s) address or a data URI", &values.Avatar, func(p *remoteworkspace.IdentityPatch) **string { return &p.Avatar }},
	}
	cmd := &cobra.Command{
		Use:   "identity",
		Short: "Show or change the fields of IDENTITY.md",
		Long: `Show the fields of IDENTITY.md, after changing those that flags give; an empty value
clears one. Only the lines of these fields change ("- **Name:** value"); everything else
in the document stays as it is.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var patch remoteworkspace.IdentityPatch
			for _, f := range fields {
				if cmd.Flags().Changed(f.flag) {
					*f.patch(&patch) = f.value
				}
			}
			return w.withWorkspace(cmd.Context(), a, func(ctx context.Context, b *boundWorkspace) error {
				res, err := b.identity(ctx, patch)
				if err != nil {
					return err
				}
				return a.printIdentity(res, jsonOut)
			})
		},
	}
	for _, f := range fields {
		cmd.Flags().StringVar(f.value, f.flag, "", f.usage)
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object")
	return cmd
}

// identity changes IDENTITY.md, or only reads it when there is nothing to change.
func (b *boundWorkspace) identity(ctx context.Context, patch remoteworkspace.IdentityPatch) (remoteworkspace.IdentityResult, error) {
	if patch != (remoteworkspace.IdentityPatch{}) {
		return b.docs.UpdateIdentity(ctx, remoteworkspace.UpdateIdentityRequest{Dir: b.dir, IdentityPatch: patch})
	}
	d, err := b.docs.Get(ctx, remoteworkspace.GetRequest{Dir: b.dir, Name: "IDENTITY.md"})
	return remoteworkspace.IdentityResult{Document: d, Identity: remoteworkspace.ParseIdentity(d.Content)}, err
}

func (a *app) printIdentity(r remoteworkspace.IdentityResult, jsonOut bool) error {
	if jsonOut {
		return writeJSON(a.stdout, struct {
			remoteworkspace.Identity
			SHA256  string `json:"sha256,omitempty"`
			Changed bool   `json:"changed"`
		}{r.Identity, string(r.Hash), r.Changed})
	}
	var rows [][]string
	for _, f := range [][2]string{
		{"name", r.Identity.Name}, {"creature", r.Identity.Creature}, {"vibe", r.Identity.Vibe},
		{"theme", r.Identity.Theme}, {"emoji", r.Identity.Emoji}, {"avatar", r.Identity.Avatar},
	} {
		if f[1] != "" {
			rows = append(rows, f[:])
		}
	}
	if len(rows) == 0 {
		return withHint(exitFailure, errors.New("IDENTITY.md states nothing"), "set a field, such as: berth workspace identity --name Ann")
	}
	return table(a.stdout, []string{"FIELD", "VALUE"}, rows)
}
