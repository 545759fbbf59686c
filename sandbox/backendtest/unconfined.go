package backendtest

import (
	"slices"

	"github.com/workberth/workberth/sandbox"
)

// Unconfined leaves out of a configuration what the suite asks for by default and only walls can
// keep; plain is the default configuration of a backend without walls. What a check asks for on
// top stays, so that refusals are seen. It is for Target.Adapt.
func Unconfined(c *sandbox.Config, plain sandbox.Config) {
	all := sandbox.DefaultConfig()
	if c.Network == all.Network {
		c.Network = plain.Network
	}
	if c.SeccompProfile == all.SeccompProfile {
		c.SeccompProfile = plain.SeccompProfile
	}
	if slices.Equal(c.Tmpfs, all.Tmpfs) {
		c.Tmpfs = nil
	}
	if c.Limits.Pids == all.Limits.Pids {
		c.Limits.Pids = 0
	}
	c.ReadOnlyRoot = false
	c.AllowDangerous = append(slices.Clone(c.AllowDangerous), plain.AllowDangerous...)
}
