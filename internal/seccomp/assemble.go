package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets into struct seccomp_data. Both architectures are little-endian, so the
// low half of an argument comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// maxInstructions is the kernel's bound on a program.
const maxInstructions = 4096

// code is a piece of a program that is entered at its beginning and left only by
// returns.
type code []bpf.Instruction

// assemble compiles a table.
func assemble(t *table) ([]bpf.RawInstruction, error) {
	program := code{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(t.arch.ID), SkipTrue: 1},
		ret(KillProcess),
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	program = append(program, tree(leaves(t))...)
	if len(program) > maxInstructions {
		return nil, fmt.Errorf("the policy needs %d instructions, the kernel takes %d: use fewer rules with conditions", len(program), maxInstructions)
	}
	return bpf.Assemble(program)
}

// leaf is the code for all calls from its number up to the next leaf's.
type leaf struct {
	from uint32
	code code
}

// leaves cuts the range of numbers into pieces with one treatment each. The
// first begins at 0.
func leaves(t *table) []leaf {
	var out []leaf
	add := func(from uint32, c code) {
		if n := len(out); n > 0 && len(c) == 1 && len(out[n-1].code) == 1 && c[0] == out[n-1].code[0] {
			return // the piece before it already does that
		}
		out = append(out, leaf{from, c})
	}
	next := uint32(0)
	for _, nr := range slices.Sorted(maps.Keys(t.calls)) {
		if nr > next {
			add(next, code{ret(t.fallback)})
		}
		add(nr, alternatives(t.calls[nr], t.fallback))
		next = nr + 1
	}
	add(next, code{ret(t.fallback)})
	if t.arch.ID == arch.X86_64.ID {
		add(uint32(arch.X32.SeccompMask), code{ret(Errno(unix.ENOSYS))})
	}
	return out
}

// tree finds the leaf for the number in the accumulator by bisection.
func tree(ls []leaf) code {
	if len(ls) == 1 {
		return ls[0].code
	}
	mid := len(ls) / 2
	low, high := tree(ls[:mid]), tree(ls[mid:])
	c := code{}
	if len(low) <= 255 {
		c = append(c, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: ls[mid].from, SkipTrue: uint8(len(low))})
	} else { // conditional jumps reach 255 instructions, others any distance
		c = append(c,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: ls[mid].from, SkipTrue: 1},
			bpf.Jump{Skip: uint32(len(low))})
	}
	return append(append(c, low...), high...)
}

// alternatives tries the branches in order.
func alternatives(bs []branch, fallback Action) code {
	var c code
	for _, b := range bs {
		if len(b.conds) == 0 {
			return append(c, ret(b.action))
		}
		one := code{ret(b.action)}
		for _, cond := range slices.Backward(b.conds) {
			one = append(test(cond, len(one)), one...)
		}
		c = append(c, one...)
	}
	return append(c, ret(fallback))
}

// test goes on with the following instruction when c holds and skips rest
// instructions when it does not. A Rule has at most six conditions, so every
// distance is short.
func test(c Cond, rest int) code {
	hi, lo := uint32(c.Value>>32), uint32(c.Value)
	off := uint32(offArgs + 8*c.Arg)
	loadLo := bpf.LoadAbsolute{Off: off, Size: 4}
	loadHi := bpf.LoadAbsolute{Off: off + 4, Size: 4}
	miss := uint8(rest)
	switch c.Op {
	case Equal:
		return code{
			loadHi, bpf.JumpIf{Cond: bpf.JumpEqual, Val: hi, SkipFalse: 2 + miss},
			loadLo, bpf.JumpIf{Cond: bpf.JumpEqual, Val: lo, SkipFalse: miss},
		}
	case NotEqual:
		return code{
			loadHi, bpf.JumpIf{Cond: bpf.JumpEqual, Val: hi, SkipFalse: 2},
			loadLo, bpf.JumpIf{Cond: bpf.JumpEqual, Val: lo, SkipTrue: miss},
		}
	case MaskedEqual:
		return code{
			loadHi, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(c.Mask >> 32)},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: hi, SkipFalse: 3 + miss},
			loadLo, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(c.Mask)},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: lo, SkipFalse: miss},
		}
	case Greater:
		return above(loadHi, loadLo, hi, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lo, SkipFalse: miss}, miss)
	case GreaterOrEqual:
		return above(loadHi, loadLo, hi, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: lo, SkipFalse: miss}, miss)
	case LessOrEqual:
		return below(loadHi, loadLo, hi, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lo, SkipTrue: miss}, miss)
	default: // Less
		return below(loadHi, loadLo, hi, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: lo, SkipTrue: miss}, miss)
	}
}

// above holds when the high half is greater, or equal and last holds.
func above(loadHi, loadLo bpf.Instruction, hi uint32, last bpf.JumpIf, miss uint8) code {
	return code{
		loadHi,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: hi, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: hi, SkipFalse: 2 + miss},
		loadLo, last,
	}
}

// below holds when the high half is less, or equal and last holds.
func below(loadHi, loadLo bpf.Instruction, hi uint32, last bpf.JumpIf, miss uint8) code {
	return code{
		loadHi,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: hi, SkipTrue: 3 + miss},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: hi, SkipFalse: 2},
		loadLo, last,
	}
}

// ret ends the program with an action.
func ret(a Action) bpf.Instruction { return bpf.RetConstant{Val: uint32(a)} }

// encode lays a program out as an array of struct sock_filter.
func encode(program []bpf.RawInstruction) []byte {
	out := make([]byte, 0, 8*len(program))
	for _, i := range program {
		out = binary.LittleEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.LittleEndian.AppendUint32(out, i.K)
	}
	return out
}
