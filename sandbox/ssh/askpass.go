package ssh

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// askpass asks with the program that SSH_ASKPASS names; nil where there is none. Nothing
// else could ask: a sandbox's owner has no terminal.
func askpass(getenv func(string) string) func(context.Context, string) ([]byte, error) {
	program := getenv("SSH_ASKPASS")
	if program == "" {
		return nil
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		out, err := exec.CommandContext(ctx, program, fmt.Sprintf("Enter passphrase for key '%s': ", path)).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		return bytes.TrimRight(out, "\r\n"), nil
	}
}
