package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Check looks at the engine and at what this machine needs for it. It creates nothing.
func (b *Backend) Check(ctx context.Context) sandbox.Diagnosis {
	d := sandbox.Diagnosis{Backend: b.opts.Name, Usable: true}
	add := func(name string, result sandbox.CheckResult, detail, remedy string) {
		d.Checks = append(d.Checks, sandbox.Check{Name: name, Result: result, Detail: detail, Remedy: remedy})
		if result == sandbox.CheckFail {
			d.Usable = false
		}
	}
	engine, about, err := b.describe(ctx)
	b.checkHelper(about, err == nil, add)
	if err != nil {
		add("engine", sandbox.CheckFail, err.Error(), remedyOf(err, b.opts.Missing))
		return d
	}
	d.Version = about.Version
	add("engine", sandbox.CheckOK, fmt.Sprintf("%s %s, API %s, %s/%s, kernel %s", about.Product, about.Version, about.API, about.OS, about.Arch, about.Kernel), "")
	if Elsewhere(b.opts.Address) {
		b.checkAway(add)
	} else {
		b.checkUser(about, add)
	}
	checkConfinement(about, add)
	checkLimits(about, add)
	add("storage", sandbox.CheckOK, strings.TrimSpace(about.Storage+" in "+about.Root), "")
	switch _, err := engine.Image(ctx, b.opts.DefaultImage); {
	case b.opts.DefaultImage == "":
	case err == nil:
		add("image", sandbox.CheckOK, b.opts.DefaultImage, "")
	case errors.Is(err, ErrNotFound):
		add("image", sandbox.CheckWarn, b.opts.DefaultImage+" is not on the engine; it is fetched when it is needed", b.opts.Name+" pull "+b.opts.DefaultImage)
	default:
		add("image", sandbox.CheckWarn, err.Error(), "")
	}
	for _, w := range about.Warnings {
		add("warning", sandbox.CheckWarn, w, "")
	}
	return d
}

type adder func(name string, result sandbox.CheckResult, detail, remedy string)

// checkHelper looks for the helper, which on another machine is one for that machine.
func (b *Backend) checkHelper(about Description, answers bool, add adder) {
	helper, err := b.helper()
	if answers && Elsewhere(b.opts.Address) {
		var p program
		p, err = b.helperFor(about)
		helper = p.path + ", carried to the engine's machine when it is needed"
	}
	if err != nil {
		add("helper", sandbox.CheckFail, err.Error(), remedyOf(err, "name the program berth-guest by its path"))
		return
	}
	add("helper", sandbox.CheckOK, helper, "")
}

// checkAway tells what an engine on another machine means.
func (b *Backend) checkAway(add adder) {
	add("machine", sandbox.CheckOK, b.opts.Address+" is another machine: sandboxes work on a copy of the workspace, in a volume there; directories of this machine cannot be bound", "")
	if b.opts.Plain {
		add("transport", sandbox.CheckWarn, "it is not encrypted: neither the engine nor this machine proves who it is, and everything can be read on the way", "use ssh://, or for Docker TLS with certificates: DOCKER_TLS_VERIFY, DOCKER_CERT_PATH")
	}
}

// checkUser looks at whose rights containers have.
func (b *Backend) checkUser(about Description, add adder) {
	switch err := checkUser(about); {
	case err != nil:
		add("user", sandbox.CheckFail, err.Error(), remedyOf(err, ""))
	case about.Rootless:
		add("user", sandbox.CheckOK, "rootless: containers have no more rights than this user", "")
	default:
		add("user", sandbox.CheckOK, "rootful: who can use the engine's socket is root on its machine; containers run as the owner of the workspace", "")
	}
}

// checkConfinement looks at what stands between a container and the machine.
func checkConfinement(about Description, add adder) {
	if slices.Contains(about.Security, "seccomp") {
		add("seccomp", sandbox.CheckOK, strings.Join(about.Security, ", "), "")
	} else {
		add("seccomp", sandbox.CheckWarn, "the engine does not filter system calls", "use a kernel with CONFIG_SECCOMP_FILTER and an engine built with seccomp")
	}
	if about.Init != "" {
		add("init", sandbox.CheckOK, about.Init, "")
	}
}

// checkLimits looks at which limits can be kept.
func checkLimits(about Description, add adder) {
	var missing []string
	for _, l := range []struct {
		name string
		ok   bool
	}{{"processes", about.PidsLimit}, {"memory", about.MemoryLimit}, {"processor time", about.CPULimit}} {
		if !l.ok {
			missing = append(missing, l.name)
		}
	}
	groups := fmt.Sprintf("control groups version %s by %s", about.CgroupVersion, about.CgroupManager)
	if len(missing) == 0 {
		add("limits", sandbox.CheckOK, groups, "")
		return
	}
	add("limits", sandbox.CheckWarn, groups+"; no limit on "+strings.Join(missing, ", "),
		"delegate these controllers to the engine's user: systemctl set-property user.slice Delegate=yes, with control groups version 2")
}

// remedyOf is what an error says is to be done.
func remedyOf(err error, otherwise string) string {
	var p *sandbox.Problem
	if errors.As(err, &p) && p.Remedy != "" {
		return p.Remedy
	}
	return otherwise
}
