package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
)

func newSkillsSync(a *app, s *skillsFlags) *cobra.Command {
	opts := mirror.Options{}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Copy the loaded skills of this machine into the workspace, to be read there",
		Long: `Copy the loaded skills of this machine (installed and bundled ones) into a directory of the
workspace, each into a folder of its name, read-only. Only files whose hash differs are written;
files of an earlier copy that are no longer wanted are removed, unless somebody has changed them.
A directory with files of others is refused.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			ld, err := a.skillLoader(s)
			if err != nil {
				return err
			}
			defer ld.close()
			l, err := ld.list(ctx, skills.Options{})
			if err != nil {
				return err
			}
			from, err := ld.gateway()
			if err != nil {
				return err
			}
			to, err := ld.workspace(ctx)
			if err != nil {
				return err
			}
			res, err := mirror.Sync(ctx, l, from, to, opts)
			if err != nil {
				return err
			}
			if s.jsonOut {
				return writeJSON(a.stdout, res)
			}
			for _, p := range res.Kept {
				fmt.Fprintf(a.stderr, "berth: %s was changed there and is kept\n", fsbridge.DisplayPath(p))
			}
			fmt.Fprintf(a.stdout, "%s: %d skills, %d files written, %d unchanged, %d removed\n",
				fsbridge.DisplayPath(res.Dir), len(res.Skills), len(res.Written), res.Unchanged, len(res.Removed))
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Dir, "to", mirror.DefaultDir, "directory for the copies, relative to the workspace")
	return cmd
}
