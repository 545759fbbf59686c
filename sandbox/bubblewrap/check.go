package bubblewrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/cgroup"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/internal/seccomp"
	"github.com/workberth/workberth/sandbox"
)

// probeBound bounds each program that Check runs.
const probeBound = 20 * time.Second

// Check looks whether sandboxes can be made here and now. It runs bwrap as a sandbox
// would, with the helper telling its version inside; nothing stays.
func (b *Backend) Check(ctx context.Context) sandbox.Diagnosis {
	d := sandbox.Diagnosis{Backend: Name}
	add := func(c sandbox.Check) { d.Checks = append(d.Checks, c) }

	bwrap, err := b.bwrap()
	if err != nil {
		add(failed("bwrap", err))
	} else {
		d.Version, err = bwrapVersion(ctx, bwrap)
		c := checkVersion(bwrap, d.Version, err)
		add(c)
		if c.Result == sandbox.CheckFail {
			bwrap = "" // trying it would only say the same again
		}
	}
	helper, err := b.helper()
	if err != nil {
		add(failed("helper", err))
	} else {
		add(sandbox.Check{Name: "helper", Result: sandbox.CheckOK, Detail: helper})
	}
	filter, err := b.filter(seccomp.ProfileDefault)
	if err != nil {
		add(failed("seccomp", err))
	} else {
		add(sandbox.Check{Name: "seccomp", Result: sandbox.CheckOK, Detail: "the default filter can be made for this machine"})
	}
	if bwrap != "" && helper != "" && filter != nil {
		for _, c := range b.tryStart(ctx, bwrap, helper, filter) {
			add(c)
		}
	}
	add(b.checkState())
	for _, c := range b.checkLimits() {
		add(c)
	}
	d.Usable = !slices.ContainsFunc(d.Checks, func(c sandbox.Check) bool { return c.Result == sandbox.CheckFail })
	return d
}

// failed makes a check of an error.
func failed(name string, err error) sandbox.Check {
	c := sandbox.Check{Name: name, Result: sandbox.CheckFail, Detail: err.Error()}
	var p *sandbox.Problem
	if errors.As(err, &p) {
		c.Remedy = p.Remedy
	}
	return c
}

// bwrapVersion asks the program for its version: "bubblewrap 0.8.0".
func bwrapVersion(ctx context.Context, bwrap string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, bwrap, "--version")
	cmd.Env = []string{}
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "bubblewrap "), nil
}

// checkVersion compares with what is needed.
func checkVersion(bwrap, version string, err error) sandbox.Check {
	c := sandbox.Check{Name: "bwrap", Result: sandbox.CheckOK, Detail: bwrap + " " + version}
	have, parseErr := seccomp.ParseVersion(version)
	need, _ := seccomp.ParseVersion(minVersion)
	switch {
	case err != nil:
		c.Result, c.Detail, c.Remedy = sandbox.CheckFail, fmt.Sprintf("%s does not tell its version: %v", bwrap, err), installRemedy
	case parseErr != nil:
		c.Result, c.Detail = sandbox.CheckWarn, fmt.Sprintf("%s tells an unknown version %q", bwrap, version)
	case have.Before(need):
		c.Result, c.Remedy = sandbox.CheckFail, "install bubblewrap "+minVersion+" or newer"
	}
	return c
}

// tryStart makes a sandbox like any other, in which the helper tells its version
// and ends.
func (b *Backend) tryStart(ctx context.Context, bwrap, helper string, filter *seccomp.Filter) []sandbox.Check {
	a, err := hostmount.AccountFor(sandbox.Spec{Config: sandbox.Config{Access: sandbox.AccessNone}}, b.selfUID(), os.Getegid())
	if err != nil {
		return []sandbox.Check{failed("user-namespaces", err)}
	}
	config := sandbox.ApplyDefaults(sandbox.Config{})
	spec := sandbox.Spec{Config: config}
	mounts, err := hostmount.List(spec, "/usr")
	if err != nil {
		return []sandbox.Check{failed("user-namespaces", err)}
	}
	mounts = slices.DeleteFunc(mounts, func(m hostmount.Mount) bool { return m.Path == sandbox.WorkspacePath })
	p := newPlan(b.root, Name+"-0000000000000000", spec, a, mounts, filter)
	p.bwrap, p.helper, p.helperArgs = bwrap, helper, helperVersionArgs()

	said, how, err := probe(ctx, p)
	if err == nil {
		return []sandbox.Check{
			{Name: "user-namespaces", Result: sandbox.CheckOK, Detail: "a sandbox was started"},
		}
	}
	err = failure(said, how, b.settings())
	if !errors.Is(err, errNoUserNamespaces) {
		return []sandbox.Check{failed("start", err)}
	}
	first := failed("user-namespaces", err)
	if a.UID != 0 {
		return []sandbox.Check{first}
	}
	p.userns = false
	if said, how, err = probe(ctx, p); err != nil {
		return []sandbox.Check{failed("user-namespaces", failure(said, how, b.settings()))}
	}
	first.Result = sandbox.CheckWarn
	first.Detail += "; as root sandboxes start without one, for workspaces of root only"
	return []sandbox.Check{first}
}

// probe runs a plan whose program ends by itself.
func probe(ctx context.Context, p *plan) (said, how string, err error) {
	c, err := p.command()
	if err != nil {
		return "", "", err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.bwrap, c.args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"PATH=/usr/bin:/bin"}, "/", c.files
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if err != nil {
		how = err.Error()
	}
	return stderr.String(), how, err
}

// checkState looks at the directory of records.
func (b *Backend) checkState() sandbox.Check {
	c := sandbox.Check{Name: "state", Result: sandbox.CheckOK, Detail: b.opts.StateDir}
	if err := unix.Access(b.opts.StateDir, unix.W_OK|unix.X_OK); err != nil {
		c.Result, c.Detail = sandbox.CheckFail, fmt.Sprintf("%s: %v", b.opts.StateDir, err)
		c.Remedy = "give this user the right to write there, or name another state directory"
	}
	return c
}

// checkLimits says for each limit how it is kept.
func (b *Backend) checkLimits() []sandbox.Check {
	instead := map[cgroup.Controller]struct {
		result sandbox.CheckResult
		text   string
	}{
		cgroup.Pids:   {sandbox.CheckWarn, "the number of processes is not bounded"},
		cgroup.Memory: {sandbox.CheckWarn, "memory is bounded per process only, by RLIMIT_AS"},
		cgroup.CPU:    {sandbox.CheckWarn, "processor time cannot be bounded"},
	}
	if countsPerNamespace(b.selfUID()) {
		i := instead[cgroup.Pids]
		i.result, i.text = sandbox.CheckOK, "processes are counted by RLIMIT_NPROC"
		instead[cgroup.Pids] = i
	}
	host, err := cgroup.Find()
	if err != nil {
		return []sandbox.Check{{Name: "limits", Result: sandbox.CheckWarn, Detail: err.Error()}}
	}
	places, missing := host.Places()
	var out []sandbox.Check
	for _, c := range slices.Sorted(maps.Keys(instead)) {
		check := sandbox.Check{Name: "limit." + string(c)}
		if p, ok := places[c]; ok {
			check.Result, check.Detail = sandbox.CheckOK, fmt.Sprintf("control groups (version %d) below %s", p.Version, p.Dir)
		} else {
			check.Result, check.Detail = instead[c].result, fmt.Sprintf("%s: %v", instead[c].text, missing[c])
			if check.Result == sandbox.CheckWarn {
				check.Remedy = "let the system delegate control groups to this user (systemd: Delegate=yes)"
			}
		}
		out = append(out, check)
	}
	return out
}
