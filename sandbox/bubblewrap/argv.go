package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// firstFile is the descriptor that the first of command.files becomes.
const firstFile = 3

// command is a run of bwrap: its arguments and the files they refer to by number.
// The files are the caller's to close once bwrap has been started.
type command struct {
	args  []string
	files []*os.File
}

// add appends arguments.
func (c *command) add(args ...string) { c.args = append(c.args, args...) }

// file passes a file on and returns its number.
func (c *command) file(f *os.File) string {
	c.files = append(c.files, f)
	return strconv.Itoa(firstFile + len(c.files) - 1)
}

// data passes bytes on as a file.
func (c *command) data(name string, b []byte) (string, error) {
	f, err := memFile(name, b)
	if err != nil {
		return "", err
	}
	return c.file(f), nil
}

// close closes the files.
func (c *command) close() {
	for _, f := range c.files {
		_ = f.Close()
	}
}

// command translates the plan. The order of mounts is the order of arguments.
func (p *plan) command() (_ *command, err error) {
	c := &command{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	p.namespaces(c)
	c.add("--size", strconv.Itoa(rootTmpfs), "--tmpfs", "/")
	for _, e := range p.entries {
		if err := c.entry(e); err != nil {
			return nil, err
		}
	}
	p.kernel(c)
	for _, m := range p.layers() {
		if err := p.layer(c, m); err != nil {
			return nil, err
		}
	}
	if p.ownHome() {
		c.add("--perms", "0700", "--dir", p.home)
	}
	if p.readOnlyRoot {
		c.add("--remount-ro", "/")
	}
	c.add("--chdir", "/")
	if !p.filter.Unconfined() {
		fd, err := c.data("seccomp", p.filter.Bytes())
		if err != nil {
			return nil, err
		}
		c.add("--seccomp", fd)
	}
	c.add("--", helperFile)
	c.add(p.helperArgs...)
	return c, nil
}

// namespaces asks for everything to be separate. The helper is process 1, so that
// it cannot be killed from inside and the namespace ends with it. A terminal of
// this machine is never passed on, so no session of its own is needed to keep
// commands from writing into it.
func (p *plan) namespaces(c *command) {
	c.add("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
	if !p.network {
		c.add("--unshare-net")
	}
	if p.userns {
		c.add("--unshare-user", "--uid", strconv.Itoa(p.account.InsideUID), "--gid", strconv.Itoa(p.account.InsideGID))
		if p.filter.Unconfined() || p.filter.Name != "default" {
			// Without our own filter nothing else forbids namespaces in namespaces.
			c.add("--disable-userns")
		}
	}
	c.add("--hostname", p.hostname, "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL")
}

// entry translates one entry of the root directory.
func (c *command) entry(e entry) error {
	switch {
	case e.dir != 0:
		c.add("--perms", fmt.Sprintf("%04o", e.dir), "--dir", e.path)
	case e.link != "":
		c.add("--symlink", e.link, e.path)
	case e.bind != "":
		c.add("--ro-bind", e.bind, e.path)
	case e.copy != "":
		f, err := openCopy(e.copy)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil // it was optional, and has gone since it was found
		}
		if err != nil {
			return err
		}
		c.add("--perms", "0444", "--file", c.file(f), e.path)
	default:
		fd, err := c.data("file", []byte(e.text))
		if err != nil {
			return err
		}
		c.add("--perms", "0444", "--file", fd, e.path)
	}
	return nil
}

// kernel adds the interfaces of the kernel: a /proc of the new process namespace,
// without what tells about the whole machine, and a /dev of seven harmless devices
// that nothing can be added to.
func (p *plan) kernel(c *command) {
	c.add("--proc", "/proc")
	if p.account.UID == 0 {
		// For the kernel's settings the owner's number is enough, capabilities and
		// namespaces are not asked for: a write to kernel/core_pattern would be the
		// way out. bwrap leaves them alone, because their directory is not writable.
		c.add("--ro-bind", "/proc/sys", "/proc/sys")
	}
	for _, f := range p.maskedFiles {
		c.add("--ro-bind", "/dev/null", f)
	}
	for _, d := range p.maskedDirs {
		c.add("--tmpfs", d, "--remount-ro", d)
	}
	c.add("--dev", "/dev",
		"--perms", "1777", "--size", strconv.Itoa(shmTmpfs), "--tmpfs", "/dev/shm",
		"--remount-ro", "/dev")
}

// layer translates one mount.
func (p *plan) layer(c *command, m hostmount.Mount) error {
	switch {
	case m.Path == sandbox.HelperPath:
		return p.helperMount(c)
	case m.Kind == fsbridge.MountTmpfs:
		c.add("--perms", tmpMode(m.Path), "--size", strconv.FormatInt(m.Size, 10), "--tmpfs", m.Path)
	case m.ReadOnly:
		c.add("--ro-bind", m.Source, m.Path)
	default:
		c.add("--bind", m.Source, m.Path)
	}
	return nil
}

// helperMount makes the guest helper available in a directory that nobody inside
// can change or move away.
func (p *plan) helperMount(c *command) error {
	c.add("--size", "65536", "--tmpfs", sandbox.HelperPath)
	if p.copyHelper {
		f, err := openCopy(p.helper)
		if err != nil {
			return fmt.Errorf("the guest helper: %w", err)
		}
		c.add("--perms", "0555", "--ro-bind-data", c.file(f), helperFile)
	} else {
		c.add("--ro-bind", p.helper, helperFile)
	}
	c.add("--remount-ro", sandbox.HelperPath)
	return nil
}
