package main

import (
	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/version"
)

// ownerRole is the private word that starts this program as an owner process.
const ownerRole = "__owner"

// newRoot is the whole command line.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "A place to work for AI agents: files and commands in a sandbox",
		Long: `berth runs an agent's commands and serves its files in a sandbox.

The default sandbox needs nothing but the bwrap program: no network, a read-only
system, no secrets of this machine, and the current directory at /workspace.

  berth exec -- make test              run a command in it
  berth fs put notes.txt < notes.txt   write a file in it
  berth sandbox explain -- make test   what would be refused, and why
  berth doctor                         what works here and what is missing`,
		Version:       version.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          help,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.SetVersionTemplate("berth {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.verbose, "verbose", false, "log what is done to standard error")
	root.AddCommand(
		newExec(a), newPs(a), newLogs(a), newStdin(a), newKill(a),
		newFS(a), newAttach(a), newSandbox(a), newImage(a), newDoctor(a), newConfig(a), newHost(a), newWorkspace(a), newSkills(a), newVersion(a), newOwner(a),
	)
	return root
}

func newVersion(a *app) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "The version of berth and of the helper it would use",
		Args:  exactly(0),
		RunE:  func(*cobra.Command, []string) error { return a.printVersion(jsonOut) },
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "as JSON")
	return cmd
}
