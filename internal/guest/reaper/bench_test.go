//go:build linux

package reaper

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// BenchmarkTrue is a command that does nothing, one after the other, under a
// reaper; and without one, to compare with.
func BenchmarkTrue(b *testing.B) {
	spec := proc.Spec{Argv: []string{"/bin/true"}}
	for _, bc := range []struct {
		name    string
		noSpare bool
		spec    proc.Spec
	}{
		{"reaper", false, spec},
		{"fresh reaper", true, spec},
		{"limits", false, proc.Spec{Argv: spec.Argv, Limits: proc.Limits{OpenFiles: 1000}}},
		{"limits by the shim", false, proc.Spec{Argv: spec.Argv, Limits: proc.Limits{CPUSeconds: 1000}}},
		{"terminal", false, proc.Spec{Argv: spec.Argv, TTY: &proc.Size{Rows: 24, Cols: 80}}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := newRunner(b, func(o *Options) { o.NoSpare = bc.noSpare })
			for b.Loop() {
				p, err := r.Start(b.Context(), bc.spec, proc.IO{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("os/exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTrueAtLeisure leaves time between commands, as people and agents do.
func BenchmarkTrueAtLeisure(b *testing.B) {
	r := newRunner(b)
	for b.Loop() {
		b.StopTimer()
		eventually(b, "an idle reaper", func() bool { return r.stock.ready() > 0 })
		time.Sleep(3 * time.Millisecond) //sleep: the pause is what is meant
		b.StartTimer()
		p, err := r.Start(b.Context(), proc.Spec{Argv: []string{"/bin/true"}}, proc.IO{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTerminateHundred ends trees of a hundred processes without grace.
func BenchmarkTerminateHundred(b *testing.B) {
	r := newRunner(b)
	for b.Loop() {
		b.StopTimer()
		id := newTracer(b)
		p, stdout, _ := begin(b, r, script(hundred(id)), nil)
		stdout.awaitText(b, "grown")
		eventually(b, "a hundred processes", func() bool { return len(id.alive()) > 100 })
		b.StartTimer()
		terminate(b, p, -1)
	}
}

// BenchmarkOutput is the throughput of one command's output.
func BenchmarkOutput(b *testing.B) {
	r := newRunner(b)
	const size = 64 << 20
	b.SetBytes(size)
	for b.Loop() {
		p, err := r.Start(b.Context(), script(fmt.Sprintf("head -c %d /dev/zero", size)), proc.IO{Stdout: discardAll{}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

type discardAll struct{}

func (discardAll) Write(b []byte) (int, error) { return len(b), nil }
