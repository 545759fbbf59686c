package backendtest

import (
	"fmt"

	"github.com/workberth/workberth/sandbox"
)

func limitChecks() []check {
	return []check{
		{name: "pids", rows: []string{"C083"}, needs: withPidsLimit, run: limitPids},
		{name: "memory", needs: withMemoryLimit, run: limitMemory},
		{name: "open-files", needs: confined, run: limitOpenFiles},
		{name: "file-size", needs: confined, run: limitFileSize},
		{name: "in-force", needs: confined, run: limitInForce},
	}
}

func withMemoryLimit(f sandbox.Features) string { return unless(f.MemoryLimit, "a limit on memory") }

// limitPids: processes are bounded; who is at the bound is told so.
func limitPids(k *kit) {
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Limits.Pids = 120 })
	s := x.start("bomb", x.witness("b"), "400")
	k.eventually("the bomb goes off", func() bool { return len(k.alive("b")) >= 8 })
	if got := len(k.alive("b")); got > 120 {
		k.Errorf("%d processes, the limit is 120", got)
	}
	s.terminate(0)
	s.ended()
	x.works()
}

// limitMemory: memory is bounded, and the sandbox survives whoever asks for too much.
func limitMemory(k *kit) {
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Limits.MemoryBytes = 512 << 20 })
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("alloc", "2048"), nil, sandbox.RunOptions{})
	k.must(err)
	var got int
	var why string
	_, _ = fmt.Sscan(string(res.Stdout.Bytes()), &got, &why)
	if res.Status.Code == 0 && (got >= 2048 || why == "ok") {
		k.Errorf("took %d MiB, the limit is 512 (%s)", got, why)
	}
	k.Logf("took %d MiB of 512: %s, %+v", got, why, res.Status)
	k.ensure(func(s *sandbox.Spec) { s.Config.Limits.MemoryBytes = 512 << 20 }).works()
}

// limitOpenFiles bounds the descriptors of a process.
func limitOpenFiles(k *kit) {
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Limits.OpenFiles = 64 })
	var got int
	var why string
	if _, err := fmt.Sscan(x.run("open", "500"), &got, &why); err != nil || got > 64 || why != "EMFILE" {
		k.Errorf("opened %d files, the limit is 64: %s, %v", got, why, err)
	}
}

// limitFileSize bounds a file that a command writes.
func limitFileSize(k *kit) {
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Limits.FileSizeBytes = 1 << 20 })
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("fill", x.inside("big"), fmt.Sprint(4<<20)), nil, sandbox.RunOptions{})
	k.must(err)
	var got int
	var why string
	_, _ = fmt.Sscan(string(res.Stdout.Bytes()), &got, &why)
	if got > 1<<20 || why == "ok" {
		k.Errorf("wrote %d bytes, the limit is 1 MiB: %s, %+v", got, why, res.Status)
	}
	// The limit is for commands, not for who works through the bridge.
	if err := x.bridge().WriteFile(k.ctx, "bigger", make([]byte, 2<<20)); err != nil {
		k.Errorf("through the bridge: %v", err)
	}
}

// limitInForce: the sandbox tells which limits hold.
func limitInForce(k *kit) {
	x := k.ensure()
	info := x.Info()
	if info.Config.Limits != sandbox.DefaultConfig().Limits {
		k.Errorf("limits %+v, asked for the defaults", info.Config.Limits)
	}
	if len(info.Runtime) == 0 {
		k.Error("nothing is told about the runtime")
	}
}
