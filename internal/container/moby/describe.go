package moby

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
)

// Describe tells what engine answers.
func (c *Client) Describe(ctx context.Context) (container.Description, error) {
	res, err := c.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return container.Description{}, c.translate(err)
	}
	in := res.Info
	d := container.Description{
		Product: "docker", Version: in.ServerVersion, API: c.api.ClientVersion(), ID: in.ID,
		OS: in.OSType, Arch: goArch(in.Architecture), Kernel: in.KernelVersion,
		CgroupVersion: in.CgroupVersion, CgroupManager: in.CgroupDriver,
		Storage: in.Driver, Root: in.DockerRootDir, Runtime: in.DefaultRuntime, Init: in.InitBinary,
		PidsLimit: in.PidsLimit, MemoryLimit: in.MemoryLimit, CPULimit: in.CPUCfsQuota, Warnings: in.Warnings,
	}
	for _, option := range in.SecurityOptions {
		// "name=seccomp,profile=default"
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "name="), ",")
		if name == "rootless" {
			d.Rootless = true
			continue
		}
		d.Security = append(d.Security, name)
	}
	slices.Sort(d.Security)
	return d, nil
}

// Ping asks whether the engine answers.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.api.Ping(ctx, client.PingOptions{})
	return c.translate(err)
}

// goArch is Go's word for what a kernel calls its machine.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "i686", "i386":
		return "386"
	case "armv7l", "armv6l":
		return "arm"
	}
	return machine
}

// broken reports whether a connection broke, or could not be made.
func broken(err error) bool {
	for _, e := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOENT, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op)
}
