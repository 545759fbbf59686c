package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// What bwrap says, in the words of its versions, becomes what a person can act on.
func TestFailure(t *testing.T) {
	forbidden := kernelSettings{unprivilegedClone: 0, maxUserNamespaces: 100, appArmorRestricted: -1}
	for name, c := range map[string]struct {
		said   string
		kind   error
		cause  error
		rule   string
		remedy string
	}{
		"clone forbidden": {
			said: "bwrap: No permissions to creating new namespace, likely because the kernel does not allow non-privileged user namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.\n",
			kind: sandbox.ErrUnavailable, cause: errNoUserNamespaces, rule: "unprivileged_userns_clone is 0", remedy: "sysctl -w kernel.unprivileged_userns_clone=1",
		},
		"clone forbidden, newer": {
			said: "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces.\n",
			kind: sandbox.ErrUnavailable, cause: errNoUserNamespaces, remedy: "sysctl",
		},
		"limit": {
			said: "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)\n",
			kind: sandbox.ErrUnavailable, cause: errNoUserNamespaces, remedy: "sysctl",
		},
		"apparmor": {
			said: "bwrap: setting up uid map: Permission denied\n",
			kind: sandbox.ErrUnavailable, cause: errNoUserNamespaces, remedy: "sysctl",
		},
		"network": {
			said: "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n",
			kind: sandbox.ErrUnavailable, cause: errNoUserNamespaces, remedy: "sysctl",
		},
		"source missing": {
			said: "bwrap: Can't find source path /no/such: No such file or directory\n",
			kind: sandbox.ErrRefused, cause: fs.ErrNotExist, rule: "No such file", remedy: "exists",
		},
		"source closed": {
			said: "bwrap: Can't find source path /root/x: Permission denied\n",
			kind: sandbox.ErrRefused, cause: fs.ErrPermission, rule: "Permission denied", remedy: "access",
		},
		"old": {
			said: "bwrap: Unknown option --size\n",
			kind: sandbox.ErrUnavailable, rule: "--size", remedy: "0.8 or newer",
		},
		"helper": {
			said: "bwrap: execvp /run/berth/berth-guest: Permission denied\n",
			kind: sandbox.ErrUnavailable, cause: fs.ErrPermission, rule: "Permission denied", remedy: "permits execution",
		},
		"seccomp": {
			said: "bwrap: prctl(PR_SET_SECCOMP): Invalid argument\n",
			kind: sandbox.ErrUnavailable, rule: "PR_SET_SECCOMP", remedy: "CONFIG_SECCOMP_FILTER",
		},
		"something else, after other lines": {
			said: "time=1 level=INFO msg=hello\nbwrap: Can't mkdir /x: Read-only file system\n",
			kind: sandbox.ErrUnavailable, rule: "Can't mkdir /x: Read-only file system (the end)", remedy: "check",
		},
		"silence": {said: "", kind: sandbox.ErrUnavailable, rule: "the end", remedy: "check"},
	} {
		t.Run(name, func(t *testing.T) {
			err := failure(c.said, "the end", forbidden)
			p := problem(t, err, "", c.kind)
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%v does not match %v", err, c.cause)
			}
			if !strings.Contains(p.Rule, c.rule) || !strings.Contains(p.Remedy, c.remedy) {
				t.Errorf("rule %q, remedy %q", p.Rule, p.Remedy)
			}
		})
	}
}

// The settings of the kernel, by which one is to blame.
func TestKernelSettings(t *testing.T) {
	root := t.TempDir()
	set := func(path, text string) {
		t.Helper()
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string) {
		t.Helper()
		rule, remedy := readKernelSettings(root).explain()
		if !strings.Contains(rule+remedy, want) || remedy == "" {
			t.Errorf("rule %q, remedy %q; want %q", rule, remedy, want)
		}
	}
	says("security module")
	set("/.dockerenv", "")
	says("container")
	set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n")
	says("AppArmor profile")
	set("/proc/sys/kernel/unprivileged_userns_clone", "0\n")
	says("unprivileged_userns_clone=1")
	set("/proc/sys/user/max_user_namespaces", "0\n")
	says("max_user_namespaces=15000")
	set("/proc/sys/user/max_user_namespaces", "nonsense\n")
	says("unprivileged_userns_clone=1")
}

// stub is a program that stands for bwrap.
func stub(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(openTempDir(t), "bwrap")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A machine without bwrap, with one that is too old, that may not make namespaces,
// or whose helper cannot start: each its own error, nothing left behind, no retries.
// C055
func TestUnavailable(t *testing.T) {
	const forbidden = `echo "bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces." >&2; exit 1`
	for name, c := range map[string]struct {
		change func(*Options)
		says   string
		check  string
	}{
		"missing": {
			func(o *Options) { o.BwrapPath = filepath.Join(o.StateDir, "none") }, "bwrap was not found", "bwrap",
		},
		"not on PATH": {
			func(o *Options) {
				o.Getenv = func(name string) string {
					return map[string]string{"PATH": "relative:/nowhere", "HOME": o.StateDir}[name]
				}
			}, "bwrap was not found", "bwrap",
		},
		"not executable": {
			func(o *Options) {
				o.BwrapPath = stub(t, "")
				if err := os.Chmod(o.BwrapPath, 0o644); err != nil {
					t.Fatal(err)
				}
			}, "bwrap was not found", "bwrap",
		},
		"old": {
			func(o *Options) {
				o.BwrapPath = stub(t, `[ "$1" = --version ] && echo "bubblewrap 0.4.1" && exit; echo "bwrap: Unknown option --size" >&2; exit 1`)
			}, "too old", "bwrap",
		},
		"namespaces forbidden": {
			func(o *Options) {
				o.BwrapPath = stub(t, `[ "$1" = --version ] && echo "bubblewrap 0.11.0" && exit; `+forbidden)
			}, "cannot make namespaces", "user-namespaces",
		},
		"ends at once": {
			func(o *Options) {
				o.BwrapPath = stub(t, `[ "$1" = --version ] && echo "bubblewrap 0.11.0" && exit; exit 23`)
			}, "before it was ready", "start",
		},
		"says nonsense": {
			func(o *Options) {
				o.BwrapPath = stub(t, `[ "$1" = --version ] && echo "bubblewrap 0.11.0" && exit; head -c 10000 /dev/zero; exit 1`)
			}, "before it was ready", "start",
		},
		"no helper": {
			func(o *Options) { o.HelperPath = filepath.Join(o.StateDir, "none") }, "helper cannot be used", "helper",
		},
		"helper is another program": {
			func(o *Options) { o.HelperPath = "/bin/false" }, "before it was ready", "start",
		},
		"helper is no program": {
			func(o *Options) {
				o.HelperPath = stub(t, "")
				if err := os.Chmod(o.HelperPath, 0o644); err != nil {
					t.Fatal(err)
				}
			}, "helper cannot be executed", "start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.change)
			_, err := r.Ensure(t.Context(), r.spec())
			p := problem(t, err, "", sandbox.ErrUnavailable)
			if !strings.Contains(p.What, c.says) {
				t.Errorf("%+v", p)
			}
			if infos, err := r.List(t.Context()); err != nil || len(infos) != 0 {
				t.Errorf("listed %v, %v", infos, err)
			}
			d := r.Check(t.Context())
			if d.Usable {
				t.Errorf("the check finds nothing: %+v", d)
			}
			for _, k := range d.Checks {
				if (k.Result == sandbox.CheckFail) != (k.Name == c.check) && !(name == "not executable") {
					t.Errorf("check %s: %s %s", k.Name, k.Result, k.Detail)
				}
				if k.Result == sandbox.CheckFail && k.Remedy == "" {
					t.Errorf("check %s has no remedy", k.Name)
				}
			}
			if entries, err := os.ReadDir(filepath.Join(r.state, "sandboxes")); err != nil || len(entries) > 1 {
				t.Errorf("left in the state directory: %v, %v", entries, err)
			}
		})
	}
}

// A sandbox with user namespaces really forbidden, by a user namespace that permits
// no further ones.
func TestNoUserNamespaces(t *testing.T) {
	if os.Getenv("BUBBLEWRAP_TEST_NO_USERNS") == "" {
		if asOrdinaryUser(t) {
			return
		}
		needBwrap(t)
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "BUBBLEWRAP_TEST_NO_USERNS=1", roleVar+"=forbid", "BUBBLEWRAP_TEST_HELPER="+helper(t))
		cmd.SysProcAttr = inNamespace()
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || strings.Contains(string(out), "cannot be forbidden") {
			t.Skipf("%v\n%s", err, out)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r := newRig(t)
	_, err := r.Ensure(t.Context(), r.spec())
	p := problem(t, err, "", sandbox.ErrUnavailable)
	if !strings.Contains(p.Rule, "user.max_user_namespaces is 0") || !strings.Contains(p.Remedy, "sysctl -w user.max_user_namespaces") {
		t.Errorf("%+v", p)
	}
}
