package libpod

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/workberth/workberth/internal/container"
)

// Describe tells what engine answers. Podman installations have no identity, and it does not tell
// which init its containers get.
func (c *Client) Describe(ctx context.Context) (container.Description, error) {
	const op = "describe the engine"
	info, err := c.info(ctx, op, true)
	if err != nil {
		return container.Description{}, err
	}
	api, err := c.negotiate(ctx, op)
	if err != nil {
		return container.Description{}, err
	}
	return describe(info, api), nil
}

// info asks the engine about itself; unless fresh is set, what it said before will do.
func (c *Client) info(ctx context.Context, op string, fresh bool) (*Info, error) {
	if known := c.facts.Load(); known != nil && !fresh {
		return known, nil
	}
	var info Info
	if err := c.get(ctx, call{op: op, method: http.MethodGet, path: "/info"}, &info); err != nil {
		return nil, err
	}
	c.facts.Store(&info)
	return &info, nil
}

// describe writes what an engine says of itself in the words of all engines.
func describe(info *Info, api string) container.Description {
	host := info.Host
	can := func(controller string) bool { return slices.Contains(host.CgroupControllers, controller) }
	d := container.Description{
		Product: "podman", Version: info.Version.Version, API: api,
		Rootless: host.Security.Rootless, KeepsID: true,
		OS: host.OS, Arch: host.Arch, Kernel: host.Kernel,
		CgroupVersion: strings.TrimPrefix(host.CgroupVersion, "v"), CgroupManager: host.CgroupManager,
		Storage: info.Store.GraphDriverName, Root: info.Store.GraphRoot,
		Runtime:   host.OCIRuntime.Name,
		PidsLimit: can("pids"), MemoryLimit: can("memory"), CPULimit: can("cpu"),
	}
	for _, s := range []struct {
		name string
		on   bool
	}{
		{"seccomp", host.Security.SECCOMPEnabled}, {"apparmor", host.Security.AppArmorEnabled},
		{"selinux", host.Security.SELinuxEnabled}, {"userns", host.Security.Rootless},
	} {
		if s.on {
			d.Security = append(d.Security, s.name)
		}
	}
	return d
}
