package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/remoteworkspace/sshhost/hostdir"
)

// hostFlags are what every "berth host" command shares.
type hostFlags struct{ dir string }

// open opens the host directory.
func (h *hostFlags) open() (*hostdir.Dir, error) {
	if h.dir == "" {
		return nil, &usageError{errors.New("--dir is missing: the directory of the host")}
	}
	return hostdir.Open(h.dir)
}

// newHost is "berth host".
func newHost(a *app) *cobra.Command {
	h := &hostFlags{}
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Serve workspaces to people and agents over SSH",
		Long: `Serve workspaces over SSH: "ssh NAME@host" is a shell in the sandbox of workspace NAME,
and sftp, scp, rsync, git and editors see the same files.

  berth host --dir D init
  berth host --dir D workspace add demo --workspace ~/demo
  berth host --dir D key add demo ~/.ssh/id_ed25519.pub
  berth host --dir D serve`,
		Args: noCommand,
		RunE: help,
	}
	cmd.PersistentFlags().StringVar(&h.dir, "dir", "", "the directory of the host: its key, settings and workspaces")
	cmd.AddCommand(newHostInit(a, h), newHostWorkspace(a, h), newHostKey(a, h), newHostCA(a, h), newHostServe(a, h), newHostStdio(a, h))
	return cmd
}

func newHostInit(a *app, h *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Make the directory: a host key, settings, no workspaces",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			if h.dir == "" {
				return &usageError{errors.New("--dir is missing: the directory of the host")}
			}
			d, err := hostdir.Init(h.dir)
			if err != nil {
				return err
			}
			key, err := d.HostKey()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "host key %s %s\n", key.PublicKey().Type(), ssh.FingerprintSHA256(key.PublicKey()))
			return err
		},
	}
}

func newHostKey(a *app, h *hostFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Say which keys may log in to a workspace", Args: noCommand, RunE: help}
	add := &cobra.Command{
		Use:   "add NAME PUBKEYFILE",
		Short: "Let the public keys of a file log in",
		Long: `Let the public keys of a file log in. Lines have the form of OpenSSH's authorized_keys. Of its
options from (addresses and networks), expiry-time, restrict, pty and port-forwarding are kept;
others (command, environment, permitopen, ...) are refused.`,
		Args: exactly(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.addKeys(h, args[0], args[1], false) },
	}
	rm := &cobra.Command{
		Use:   "rm NAME FINGERPRINT",
		Short: "Withdraw a key or an authority",
		Args:  exactly(2),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			return d.RemoveKey(args[0], args[1])
		},
	}
	cmd.AddCommand(add, newHostKeyLs(a, h), rm)
	return cmd
}

func newHostKeyLs(a *app, h *hostFlags) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "ls NAME",
		Short: "List the keys and authorities of a workspace",
		Args:  exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			entries, err := d.Keys(args[0])
			if err != nil {
				return err
			}
			return a.printKeys(entries, jsonOut)
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per key")
	return cmd
}

// newHostCA is "berth host ca".
func newHostCA(a *app, h *hostFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "Say whose certificates may log in to a workspace", Args: noCommand, RunE: help}
	cmd.AddCommand(&cobra.Command{
		Use:   "add NAME CAFILE",
		Short: "Admit certificates that the keys of a file have signed",
		Long: `Admit user certificates that the public keys of a file have signed. A certificate must name the
workspace among its principals (ssh-keygen -s CA -n NAME -I ID -V +1d KEY.pub). Its validity,
source-address, permit-pty and permit-port-forwarding are kept; one with another critical
option, such as force-command, is refused. "key ls" lists and "key rm" withdraws them.`,
		Args: exactly(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.addKeys(h, args[0], args[1], true) },
	})
	return cmd
}

// addKeys adds keys and tells which.
func (a *app) addKeys(h *hostFlags, name, file string, authority bool) error {
	d, err := h.open()
	if err != nil {
		return err
	}
	added, err := d.AddKeys(name, file, authority)
	if err != nil {
		return err
	}
	if len(added) == 0 {
		_, err := fmt.Fprintln(a.stdout, "they were there already")
		return err
	}
	return a.printKeys(added, false)
}

func (a *app) printKeys(entries []hostdir.Entry, jsonOut bool) error {
	rows := make([][]string, 0, len(entries))
	for _, e := range entries {
		kind := "key"
		if e.Authority {
			kind = "authority"
		}
		if jsonOut {
			if err := writeJSON(a.stdout, map[string]any{
				"kind": kind, "fingerprint": e.Fingerprint(), "type": e.Key.Key.Type(), "comment": e.Key.Comment, "restrictions": restrictions(e),
			}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{kind, e.Fingerprint(), e.Key.Key.Type(), printable(e.Key.Comment), strings.Join(restrictions(e), " ")})
	}
	if jsonOut {
		return nil
	}
	return table(a.stdout, []string{"KIND", "FINGERPRINT", "TYPE", "COMMENT", "RESTRICTIONS"}, rows)
}

// restrictions lists what bounds a key.
func restrictions(e hostdir.Entry) []string {
	out := []string{}
	if e.Key.From != nil {
		out = append(out, "from="+e.Key.From.String())
	}
	if !e.Key.Expires.IsZero() {
		out = append(out, "expires="+e.Key.Expires.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if e.Key.NoPTY {
		out = append(out, "no-pty")
	}
	if e.Key.NoForward {
		out = append(out, "no-port-forwarding")
	}
	return out
}

// appendFile opens a log for appending, private to this user.
func appendFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}
