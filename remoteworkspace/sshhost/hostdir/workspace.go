package hostdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/workberth/workberth/remoteworkspace/sshhost"
)

// Workspace are the settings of one workspace.
type Workspace struct {
	// Name is the user name of SSH; it is that of the directory, not in the file.
	Name string `yaml:"-" json:"name"`
	// Workspace is a directory of this machine, absolute; with SSH one of that host.
	Workspace string `yaml:"workspace" json:"workspace"`
	// Backend, SSH, SSHConfig, Image, Access and Network are those of "berth exec".
	Backend   string `yaml:"backend" json:"backend"`
	SSH       string `yaml:"ssh,omitempty" json:"ssh,omitempty"`
	SSHConfig string `yaml:"sshConfig,omitempty" json:"sshConfig,omitempty"`
	Image     string `yaml:"image,omitempty" json:"image,omitempty"`
	Access    string `yaml:"access,omitempty" json:"access,omitempty"`
	Network   string `yaml:"network,omitempty" json:"network,omitempty"`
	// Forward permits connections to the sandbox's loopback.
	Forward bool `yaml:"forward,omitempty" json:"forward,omitempty"`
	// KeepBackground leaves background processes until the sandbox ends.
	KeepBackground bool `yaml:"keepBackground,omitempty" json:"keepBackground,omitempty"`
	// AllowDangerous permits dangerous settings by name.
	AllowDangerous []string `yaml:"allowDangerous,omitempty" json:"allowDangerous,omitempty"`
}

// in is the path of a workspace's file.
func in(name, file string) string { return filepath.Join(workspacesDir, name, file) }

// AddWorkspace records a new workspace.
func (d *Dir) AddWorkspace(w Workspace) error {
	if err := sshhost.ValidName(w.Name); err != nil {
		return err
	}
	data, err := yaml.Marshal(w)
	if err != nil {
		return err
	}
	return d.locked(func() error {
		dir := filepath.Join(d.path, workspacesDir, w.Name)
		if _, err := os.Lstat(filepath.Join(dir, workspaceFile)); err == nil {
			return refused("workspace "+w.Name, "there is one of that name", "choose another name, or remove it first")
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("add workspace %s: %w", w.Name, err)
		}
		return d.write(in(w.Name, workspaceFile), data)
	})
}

// RemoveWorkspace forgets a workspace and its keys. The files it is about stay.
func (d *Dir) RemoveWorkspace(name string) error {
	if err := d.known(name); err != nil {
		return err
	}
	return d.locked(func() error {
		// What makes it a workspace goes first: a crash leaves no half of one.
		if err := os.Remove(filepath.Join(d.path, in(name, workspaceFile))); err != nil {
			return fmt.Errorf("remove workspace %s: %w", name, err)
		}
		return os.RemoveAll(filepath.Join(d.path, workspacesDir, name))
	})
}

// known refuses a name that is no workspace.
func (d *Dir) known(name string) error {
	if err := sshhost.ValidName(name); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(d.path, in(name, workspaceFile))); err != nil {
		return refused("workspace "+name, "there is none of that name", "see: berth host --dir "+d.path+" workspace ls")
	}
	return nil
}

// Workspaces lists the workspaces by name.
func (d *Dir) Workspaces() ([]Workspace, error) {
	root := filepath.Join(d.path, workspacesDir)
	if err := private(root, false); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var all []Workspace
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(root, e.Name(), workspaceFile)); err != nil {
			continue
		}
		w, err := d.Workspace(e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Workspace) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all, nil
}

// Workspace reads one workspace.
func (d *Dir) Workspace(name string) (Workspace, error) {
	if err := d.known(name); err != nil {
		return Workspace{}, err
	}
	if err := private(filepath.Join(d.path, workspacesDir, name), false); err != nil {
		return Workspace{}, err
	}
	w := Workspace{}
	if err := d.decode(in(name, workspaceFile), &w); err != nil {
		return Workspace{}, err
	}
	w.Name = name
	if w.SSH == "" && !filepath.IsAbs(w.Workspace) {
		return Workspace{}, refused(filepath.Join(d.path, in(name, workspaceFile)), fmt.Sprintf("workspace %q is not an absolute path", w.Workspace), "write the absolute path")
	}
	return w, nil
}

// Policy is who may come in, for the server: all or nothing. One line that cannot be kept
// as it is written is an error that names it.
func (d *Dir) Policy() (sshhost.Policy, []Workspace, error) {
	list, err := d.Workspaces()
	if err != nil {
		return sshhost.Policy{}, nil, err
	}
	p := sshhost.Policy{Workspaces: make(map[string]sshhost.Workspace, len(list))}
	for _, w := range list {
		keys, err := d.Keys(w.Name)
		if err != nil {
			return sshhost.Policy{}, nil, err
		}
		ws := sshhost.Workspace{Forward: w.Forward, KeepBackground: w.KeepBackground, Revision: w.revision()}
		for _, k := range keys {
			if k.Authority {
				ws.Authorities = append(ws.Authorities, k.Key.Key)
			} else {
				ws.Keys = append(ws.Keys, k.Key)
			}
		}
		p.Workspaces[w.Name] = ws
	}
	return p, list, nil
}

// revision names the settings a sandbox is made of.
func (w Workspace) revision() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %q %q %q", w.Workspace, w.Backend, w.SSH, w.SSHConfig, w.Image, w.Access, w.Network, w.AllowDangerous)
	return hex.EncodeToString(h.Sum(nil))
}
