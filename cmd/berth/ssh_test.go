package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/workberth/workberth/internal/sshtest"
)

// TestSSH runs the scripts in testdata/ssh with a real SSH server and an account of its own.
func TestSSH(t *testing.T) {
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{})
	server := sshtest.Start(t, sshtest.Options{Account: account})
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/ssh",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if err := setupScript(env); err != nil {
				return err
			}
			dir := filepath.Join(env.Getenv("HOME"), ".ssh")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			env.Setenv("SSH_TARGET", fmt.Sprintf("%s@%s", account.Name, server.Addr))
			env.Setenv("REMOTE", account.Home)
			env.Setenv("IDENTITY", server.IdentityFile)
			env.Setenv("KNOWN_HOSTS", server.KnownHostsFile)
			config := fmt.Sprintf("Host box\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %s\n  UserKnownHostsFile %s\n",
				server.Host, server.Port, account.Name, server.IdentityFile, server.KnownHostsFile)
			return os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": cmdCode},
	})
}
