package seccomp

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machine runs a filter as the kernel does.
type machine struct{ vm *bpf.VM }

func newMachine(t rapid.TB, f *Filter) machine {
	t.Helper()
	program, all := bpf.Disassemble(f.program)
	if !all {
		t.Fatal("the program has instructions that cannot be disassembled")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatalf("the program is malformed: %v", err)
	}
	return machine{vm}
}

// run evaluates the filter for one call. The virtual machine loads words in
// network order from a packet, so each word of struct seccomp_data is laid out so.
func (m machine) run(t rapid.TB, id uint32, nr uint32, args [6]uint64) Action {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, nr)
	data = binary.BigEndian.AppendUint32(data, id)
	data = binary.BigEndian.AppendUint64(data, 0x7f0000001000) // instruction pointer
	for _, a := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(a))
		data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
	}
	got, err := m.vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return Action(uint32(got))
}

func facts(goarch string) Facts { return Facts{Arch: goarch, Kernel: Version{6, 1}} }

// The treatment of every system call by the default policy, compared with a table
// that people can read and review.
func TestDefaultTable(t *testing.T) {
	for _, goarch := range []string{"amd64", "arm64"} {
		t.Run(goarch, func(t *testing.T) {
			f, err := Load("default", facts(goarch))
			if err != nil {
				t.Fatal(err)
			}
			m, info := newMachine(t, f), must(archInfo(goarch))(t)
			tab := must(resolve(Default(), facts(goarch)))(t)
			var b strings.Builder
			for _, nr := range slices.Sorted(maps.Keys(info.SyscallNumbers)) {
				n := uint32(nr)
				what := m.run(t, uint32(info.ID), n, [6]uint64{}).String()
				if len(tab.calls[n]) > 0 && len(tab.calls[n][0].conds) > 0 {
					what = "by its arguments"
				}
				fmt.Fprintf(&b, "%-3d %-26s %s\n", nr, info.SyscallNumbers[nr], what)
			}
			golden := filepath.Join("testdata", "default-"+goarch+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("the table differs from %s; look at the difference and run with -update", golden)
			}
		})
	}
}

// The decisions that depend on arguments, and those that matter most.
func TestDefaultDecisions(t *testing.T) {
	eperm, enosys := Errno(unix.EPERM), Errno(unix.ENOSYS)
	for _, goarch := range []string{"amd64", "arm64"} {
		f := must(Load("", facts(goarch)))(t)
		m, info := newMachine(t, f), must(archInfo(goarch))(t)
		for _, c := range []struct {
			call string
			args [6]uint64
			want Action
		}{
			{"clone", [6]uint64{uint64(unix.SIGCHLD)}, Allow},
			{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, Allow},
			{"clone", [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWNS}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWPID}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWNET}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWIPC}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWUTS}, eperm},
			{"clone", [6]uint64{unix.CLONE_NEWCGROUP}, eperm},
			{"clone", [6]uint64{1<<40 | unix.CLONE_NEWUSER}, eperm},
			{"clone3", [6]uint64{}, enosys},
			{"unshare", [6]uint64{}, eperm},
			{"setns", [6]uint64{}, eperm},
			{"mount", [6]uint64{}, eperm},
			{"umount2", [6]uint64{}, eperm},
			{"pivot_root", [6]uint64{}, eperm},
			{"chroot", [6]uint64{}, eperm},
			{"bpf", [6]uint64{}, eperm},
			{"keyctl", [6]uint64{}, eperm},
			{"add_key", [6]uint64{}, eperm},
			{"request_key", [6]uint64{}, eperm},
			{"userfaultfd", [6]uint64{}, eperm},
			{"io_uring_setup", [6]uint64{}, eperm},
			{"perf_event_open", [6]uint64{}, eperm},
			{"kexec_load", [6]uint64{}, eperm},
			{"init_module", [6]uint64{}, eperm},
			{"open_by_handle_at", [6]uint64{}, eperm},
			{"reboot", [6]uint64{}, eperm},
			{"ptrace", [6]uint64{}, Allow},
			{"openat2", [6]uint64{}, Allow},
			{"socket", [6]uint64{unix.AF_UNIX}, Allow},
			{"socket", [6]uint64{unix.AF_INET}, Allow},
			{"socket", [6]uint64{unix.AF_INET6}, Allow},
			{"socket", [6]uint64{unix.AF_NETLINK}, Allow},
			{"socket", [6]uint64{unix.AF_VSOCK}, eperm},
			{"socket", [6]uint64{unix.AF_ALG}, eperm},
			{"socket", [6]uint64{1<<32 | unix.AF_VSOCK}, eperm},
			{"socket", [6]uint64{1<<32 | unix.AF_ALG}, eperm},
			{"personality", [6]uint64{0}, Allow},
			{"personality", [6]uint64{0xffffffff}, Allow},
			{"personality", [6]uint64{0x20008}, Allow},
			{"personality", [6]uint64{0x0040000}, eperm}, // ADDR_NO_RANDOMIZE
		} {
			nr, ok := info.SyscallNames[c.call]
			if !ok {
				t.Fatalf("%s has no %s", goarch, c.call)
			}
			if got := m.run(t, uint32(info.ID), uint32(nr), c.args); got != c.want {
				t.Errorf("%s %s%#x: %s, want %s", goarch, c.call, c.args, got, c.want)
			}
		}
		for _, nr := range []uint32{100000, 0x3fffffff, uint32(info.SyscallNames["read"]) + 1<<20} {
			if got := m.run(t, uint32(info.ID), nr, [6]uint64{}); got != eperm {
				t.Errorf("%s: call %d that does not exist: %s, want %s", goarch, nr, got, eperm)
			}
		}
	}
}

// Calls by another convention never reach a table that was made for ours.
func TestForeignConventions(t *testing.T) {
	for _, goarch := range []string{"amd64", "arm64"} {
		m := newMachine(t, must(Load("", facts(goarch)))(t))
		own := must(archInfo(goarch))(t)
		for _, other := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386, arch.ARM, arch.PPC64LE} {
			if other.ID == own.ID {
				continue
			}
			for nr := range uint32(500) {
				if got := m.run(t, uint32(other.ID), nr, [6]uint64{}); got != KillProcess {
					t.Fatalf("%s: call %d by %s: %s", goarch, nr, other.Name, got)
				}
			}
		}
	}
	m := newMachine(t, must(Load("", facts("amd64")))(t))
	for nr := range uint32(1000) {
		if got := m.run(t, uint32(arch.X86_64.ID), nr|0x40000000, [6]uint64{}); got != Errno(unix.ENOSYS) {
			t.Fatalf("x32 call %d: %s", nr, got)
		}
	}
	if got := m.run(t, uint32(arch.X86_64.ID), 0xffffffff, [6]uint64{}); got != Errno(unix.ENOSYS) {
		t.Fatalf("call -1: %s", got)
	}
}

// The compiled program decides as the plain evaluation of the rules does, for
// random policies and calls.
func TestCompiledLikeEvaluated(t *testing.T) {
	info := arch.X86_64
	names := slices.Sorted(maps.Keys(info.SyscallNames))
	actions := []Action{Allow, Log, Trap, KillThread, KillProcess, Errno(unix.EPERM), Errno(unix.ENOSYS), Errno(4095)}
	rapid.Check(t, func(t *rapid.T) {
		// Numbers that collide often, near the borders of the halves.
		number := rapid.OneOf(
			rapid.Uint64(),
			rapid.SampledFrom([]uint64{0, 1, 2, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 63, 1<<64 - 1}),
		)
		cond := rapid.Custom(func(t *rapid.T) Cond {
			return Cond{
				Arg: rapid.IntRange(0, 5).Draw(t, "arg"), Op: Op(rapid.IntRange(0, 6).Draw(t, "op")),
				Value: number.Draw(t, "value"), Mask: number.Draw(t, "mask"),
			}
		})
		p := Policy{Default: rapid.SampledFrom(actions).Draw(t, "default")}
		once := map[string]bool{}
		for range rapid.IntRange(0, 15).Draw(t, "rules") {
			r := Rule{
				Names:  rapid.SliceOfN(rapid.SampledFrom(names), 1, 8).Draw(t, "names"),
				Action: rapid.SampledFrom(actions).Draw(t, "action"),
				Conds:  rapid.SliceOfN(cond, 0, 3).Draw(t, "conds"),
			}
			if len(r.Conds) == 0 { // contradicting rules are refused; see TestRefusals
				r.Names = slices.DeleteFunc(r.Names, func(n string) bool { return once[n] })
				slices.Sort(r.Names)
				r.Names = slices.Compact(r.Names)
				for _, n := range r.Names {
					once[n] = true
				}
			}
			p.Rules = append(p.Rules, r)
		}
		tab, err := resolve(p, facts("amd64"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Compile(p, facts("amd64"))
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(t, f)
		for range 50 {
			nr := rapid.Uint32Range(0, 0x3fffffff).Draw(t, "nr")
			if len(p.Rules) > 0 && rapid.IntRange(0, 9).Draw(t, "odd") > 0 {
				if r := rapid.SampledFrom(p.Rules).Draw(t, "rule"); len(r.Names) > 0 {
					nr = uint32(info.SyscallNames[rapid.SampledFrom(r.Names).Draw(t, "call")])
				}
			}
			var args [6]uint64
			for i := range args {
				args[i] = number.Draw(t, "arg")
			}
			if got, want := m.run(t, uint32(info.ID), nr, args), tab.decide(nr, args); got != want {
				t.Fatalf("call %d%#x: program says %s, rules say %s", nr, args, got, want)
			}
		}
	})
}

// A program whose parts lie further apart than a conditional jump reaches.
func TestLongProgram(t *testing.T) {
	p := Policy{Default: Errno(unix.EPERM)}
	info := arch.X86_64
	for _, name := range slices.Sorted(maps.Keys(info.SyscallNames)) {
		p.Rules = append(p.Rules, Rule{Names: []string{name}, Action: Allow, Conds: []Cond{{Arg: 1, Op: Greater, Value: uint64(info.SyscallNames[name])}}})
	}
	f := must(Compile(p, facts("amd64")))(t)
	if len(f.program) < 2000 || len(f.program) > maxInstructions {
		t.Fatalf("%d instructions do not test long jumps", len(f.program))
	}
	m := newMachine(t, f)
	for nr := range info.SyscallNumbers {
		n := uint64(nr)
		if got := m.run(t, uint32(info.ID), uint32(nr), [6]uint64{0, n + 1}); got != Allow {
			t.Errorf("call %d: %s", nr, got)
		}
		if got := m.run(t, uint32(info.ID), uint32(nr), [6]uint64{0, n}); got != p.Default {
			t.Errorf("call %d: %s", nr, got)
		}
	}
	p.Rules = append(p.Rules, p.Rules...)
	p.Rules = append(p.Rules, p.Rules...)
	if _, err := Compile(p, facts("amd64")); err == nil {
		t.Error("a program that the kernel would refuse was made")
	}
}

// must gives a value or ends the test.
func must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
