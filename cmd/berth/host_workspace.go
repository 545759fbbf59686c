package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/remoteworkspace/sshhost"
	"github.com/workberth/workberth/remoteworkspace/sshhost/hostdir"
	"github.com/workberth/workberth/sandbox/local"
	sshbackend "github.com/workberth/workberth/sandbox/ssh"
)

// newHostWorkspace is "berth host workspace".
func newHostWorkspace(a *app, h *hostFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "workspace", Short: "Add, list and remove the workspaces of the host", Args: noCommand, RunE: help}
	rm := &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a workspace and its keys; its files stay",
		Args:  exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			return d.RemoveWorkspace(args[0])
		},
	}
	cmd.AddCommand(newHostWorkspaceAdd(a, h), newHostWorkspaceLs(a, h), rm)
	return cmd
}

func newHostWorkspaceAdd(a *app, h *hostFlags) *cobra.Command {
	w := hostdir.Workspace{}
	cmd := &cobra.Command{
		Use:   "add NAME --workspace DIR",
		Short: "Serve a directory under a name, which is the user name of SSH",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			if w.Workspace == "" {
				return &usageError{errors.New("--workspace is missing: the directory to serve")}
			}
			if w.SSH == "" {
				if w.Workspace, err = filepath.Abs(w.Workspace); err != nil {
					return err
				}
			} else if !cmd.Flags().Changed("backend") {
				w.Backend = sshbackend.Name
			}
			if w.SSHConfig, err = absolute(w.SSHConfig); err != nil {
				return err
			}
			w.Name = args[0]
			if err := sshhost.ValidName(w.Name); err != nil {
				return err
			}
			// What would be refused when somebody connects is refused now.
			if _, _, err := a.resolve(hostTarget(w)); err != nil {
				return err
			}
			return d.AddWorkspace(w)
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.Workspace, "workspace", "", "directory of this machine to serve; with --ssh one of that host")
	f.StringVar(&w.Backend, "backend", "bubblewrap", "where sessions run: bubblewrap, docker, podman or ssh; "+local.Name+" gives them this user's own rights")
	f.StringVar(&w.SSH, "ssh", "", "host of the ssh backend, which sessions are passed on to: USER@HOST[:PORT], or a Host of the SSH configuration")
	f.StringVar(&w.SSHConfig, "ssh-config", "", "SSH configuration file (default ~/.ssh/config and the system's)")
	f.StringVar(&w.Image, "image", "", "image of a container")
	f.StringVar(&w.Access, "access", "rw", "how the workspace appears inside: none, ro or rw")
	f.StringVar(&w.Network, "network", "", "none, bridge or the name of an engine's network (default none)")
	f.BoolVar(&w.Forward, "forward", false, "permit connections to the sandbox's own loopback (ssh -L)")
	f.BoolVar(&w.KeepBackground, "keep-background", false, "leave background processes of a finished command until the sandbox ends")
	f.StringSliceVar(&w.AllowDangerous, "allow-dangerous", nil, "permit a dangerous setting by its field; logged")
	return cmd
}

// hostTarget is a workspace as the target of a command: a sandbox of its own, whatever
// else runs for the same directory.
func hostTarget(w hostdir.Workspace) *target {
	t := &target{
		backend: w.Backend, workspace: w.Workspace, access: w.Access, network: w.Network, image: w.Image,
		ssh: w.SSH, sshConfig: w.SSHConfig, scope: "session", session: "ssh host " + w.Name, allowDangerous: w.AllowDangerous,
	}
	return t
}

func newHostWorkspaceLs(a *app, h *hostFlags) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the workspaces",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			all, err := d.Workspaces()
			if err != nil {
				return err
			}
			return a.printWorkspaces(all, jsonOut)
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per workspace")
	return cmd
}

func (a *app) printWorkspaces(all []hostdir.Workspace, jsonOut bool) error {
	rows := make([][]string, 0, len(all))
	for _, w := range all {
		if jsonOut {
			if err := writeJSON(a.stdout, w); err != nil {
				return err
			}
			continue
		}
		var extras []string
		if w.SSH != "" {
			extras = append(extras, "ssh="+w.SSH)
		}
		if w.Image != "" {
			extras = append(extras, "image="+w.Image)
		}
		if w.Network != "" {
			extras = append(extras, "network="+w.Network)
		}
		if w.Forward {
			extras = append(extras, "forward")
		}
		if w.KeepBackground {
			extras = append(extras, "keep-background")
		}
		rows = append(rows, []string{w.Name, w.Backend, w.Access, printable(w.Workspace), strings.Join(extras, " ")})
	}
	if jsonOut {
		return nil
	}
	return table(a.stdout, []string{"NAME", "BACKEND", "ACCESS", "WORKSPACE", "SETTINGS"}, rows)
}
