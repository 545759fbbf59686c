package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// exactly, atLeast and atMost check the number of arguments and report misuse as
// a usageError.
func exactly(n int) cobra.PositionalArgs { return usage(cobra.ExactArgs(n)) }
func atLeast(n int) cobra.PositionalArgs { return usage(cobra.MinimumNArgs(n)) }
func atMost(n int) cobra.PositionalArgs  { return usage(cobra.MaximumNArgs(n)) }

func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w; usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// noCommand refuses words that are no subcommand.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())}
	}
	return nil
}

// help prints the help of a command that does nothing by itself.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }
