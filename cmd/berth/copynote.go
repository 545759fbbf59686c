package main

import (
	"context"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/owner"
)

// noteCopy tells of a sandbox that was just started what nobody would expect of it: that it works on a
// copy of the workspace although its engine's address is one of this machine, or that the copy lacks
// something.
func (a *app) noteCopy(ctx context.Context, h *owner.Handle) {
	info, err := h.Info(ctx)
	if err != nil || info.Runtime["copy"] == "" {
		return // who uses it is told why it does not answer
	}
	if !container.Elsewhere(info.Config.Engine) {
		a.logger().Warn("the engine does not see the files of this machine: the sandbox works on a copy of the workspace", "engine", info.Config.Engine, "copy", info.Runtime["copy"])
	}
	if left := info.Runtime["leftOut"]; left != "" {
		a.logger().Warn("the copy of the workspace lacks files", "leftOut", left)
	}
}
