package wire

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// ExecRequest starts a command.
type ExecRequest struct {
	Spec proc.Spec
	// Stdout and Stderr ask for the command's output; otherwise it is dropped.
	Stdout, Stderr bool
	// Window is the credit of either output channel.
	Window int
}

// Append appends the request.
func (r ExecRequest) Append(b []byte) []byte {
	s := r.Spec
	b = AppendStrings(b, s.Argv)
	b = AppendStrings(b, s.Env)
	b = AppendString(b, s.Dir)
	b = AppendBool(b, s.TTY != nil)
	if s.TTY != nil {
		b = appendSize(b, *s.TTY)
	}
	b = AppendBool(b, s.Stdin)
	for _, limit := range []uint64{
		s.Limits.OpenFiles, s.Limits.FileSize, s.Limits.AddressSpace, s.Limits.Processes,
		s.Limits.CPUSeconds, s.Limits.CoreFileBytes,
	} {
		b = binary.AppendUvarint(b, limit)
	}
	b = AppendString(b, s.Marker)
	b = AppendBool(b, s.KeepDescendants)
	b = binary.AppendVarint(b, int64(s.Grace))
	b = AppendBool(b, r.Stdout)
	b = AppendBool(b, r.Stderr)
	return binary.AppendUvarint(b, uint64(r.Window))
}

// ExecRequest takes the request.
func (d *Decoder) ExecRequest() ExecRequest {
	var r ExecRequest
	s := &r.Spec
	s.Argv = d.Strings(MaxArgs, MaxFrame)
	s.Env = d.Strings(MaxArgs, MaxFrame)
	s.Dir = d.String(MaxPath)
	if d.Bool() {
		size := d.termSize()
		s.TTY = &size
	}
	s.Stdin = d.Bool()
	for _, limit := range []*uint64{
		&s.Limits.OpenFiles, &s.Limits.FileSize, &s.Limits.AddressSpace, &s.Limits.Processes,
		&s.Limits.CPUSeconds, &s.Limits.CoreFileBytes,
	} {
		*limit = d.Uvarint()
	}
	s.Marker = d.String(MaxWord)
	s.KeepDescendants = d.Bool()
	s.Grace = time.Duration(d.Varint())
	r.Stdout = d.Bool()
	r.Stderr = d.Bool()
	r.Window = d.window()
	return r
}

func appendSize(b []byte, s proc.Size) []byte {
	b = binary.AppendUvarint(b, uint64(s.Rows))
	return binary.AppendUvarint(b, uint64(s.Cols))
}

func (d *Decoder) termSize() proc.Size {
	return proc.Size{Rows: uint16(d.Upto(math.MaxUint16)), Cols: uint16(d.Upto(math.MaxUint16))}
}

// AppendStatus appends how a command ended.
func AppendStatus(b []byte, s proc.Status) []byte {
	b = binary.AppendVarint(b, int64(s.Code))
	b = binary.AppendVarint(b, int64(s.Signal))
	b = AppendBool(b, s.Unknown)
	b = AppendString(b, clip(s.Reason, MaxText))
	return binary.AppendUvarint(b, uint64(max(s.Leftover, 0)))
}

// Status takes how a command ended. Exactly one of the cases proc.Status tells
// must hold.
func (d *Decoder) Status() proc.Status {
	s := proc.Status{
		Code: d.Int(), Signal: d.Int(), Unknown: d.Bool(),
		Reason: Printable(d.String(MaxText), MaxText), Leftover: int(d.Upto(math.MaxInt32)),
	}
	switch {
	case d.err != nil:
		return proc.Status{}
	case s.Code < 0 || s.Code > 255 || s.Signal < 0 || s.Signal > 64,
		s.Signal > 0 && s.Code != 128+s.Signal,
		s.Unknown && s.Signal > 0:
		d.fail("status code %d, signal %d, unknown %t", s.Code, s.Signal, s.Unknown)
		return proc.Status{}
	}
	return s
}

// SignalRequest sends a signal to the command of another stream.
type SignalRequest struct {
	Stream uint64
	Signal int
}

// Append appends the request.
func (r SignalRequest) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, r.Stream)
	return binary.AppendVarint(b, int64(r.Signal))
}

// SignalRequest takes the request.
func (d *Decoder) SignalRequest() SignalRequest { return SignalRequest{d.Uvarint(), d.Int()} }

// ResizeRequest sets the terminal size of the command of another stream.
type ResizeRequest struct {
	Stream uint64
	Size   proc.Size
}

// Append appends the request.
func (r ResizeRequest) Append(b []byte) []byte {
	return appendSize(binary.AppendUvarint(b, r.Stream), r.Size)
}

// ResizeRequest takes the request.
func (d *Decoder) ResizeRequest() ResizeRequest { return ResizeRequest{d.Uvarint(), d.termSize()} }

// TerminateRequest ends a process tree: that of the command of another stream
// while it runs, otherwise the one that carries the marker.
type TerminateRequest struct {
	Stream uint64 // zero: none
	Marker string
	Grace  time.Duration
}

// Append appends the request.
func (r TerminateRequest) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, r.Stream)
	b = AppendString(b, r.Marker)
	return binary.AppendVarint(b, int64(r.Grace))
}

// TerminateRequest takes the request.
func (d *Decoder) TerminateRequest() TerminateRequest {
	return TerminateRequest{d.Uvarint(), d.String(MaxWord), time.Duration(d.Varint())}
}

var terminations = []proc.Termination{proc.Gone, proc.Survivors, proc.Unknown}

// AppendTerminateResult appends the outcome of a termination.
func AppendTerminateResult(b []byte, r proc.TerminateResult) []byte {
	b = appendEnum(b, terminations, r.Outcome)
	pids := r.Pids[:min(len(r.Pids), MaxPids)]
	b = binary.AppendUvarint(b, uint64(len(pids)))
	for _, pid := range pids {
		b = binary.AppendUvarint(b, uint64(max(pid, 0)))
	}
	return binary.AppendUvarint(b, uint64(max(r.Killed, 0)))
}

// TerminateResult takes the outcome of a termination. Survivors go with their
// process ids, Gone never does.
func (d *Decoder) TerminateResult() proc.TerminateResult {
	r := proc.TerminateResult{Outcome: takeEnum(d, "termination", terminations)}
	for range d.Count(MaxPids, 1) {
		r.Pids = append(r.Pids, int(d.Upto(math.MaxInt32)))
	}
	r.Killed = int(d.Upto(math.MaxInt32))
	switch {
	case d.err != nil:
		return proc.TerminateResult{}
	case r.Outcome == proc.Gone && len(r.Pids) > 0:
		d.fail("termination %q with %d processes left", r.Outcome, len(r.Pids))
		return proc.TerminateResult{}
	}
	return r
}

// SweepRequest ends what the sessions of a tag left running.
type SweepRequest struct{ Tag string }

// Append appends the request.
func (r SweepRequest) Append(b []byte) []byte { return AppendString(b, r.Tag) }

// SweepRequest takes the request.
func (d *Decoder) SweepRequest() SweepRequest { return SweepRequest{d.String(MaxWord)} }

// CallRequest is a control call.
type CallRequest struct {
	Method string
	// In tells that input follows on ChannelIn; Out and Err that the caller
	// wants output.
	In, Out, Err bool
	Window       int
	Body         []byte
}

// Append appends the request, Body included.
func (r CallRequest) Append(b []byte) []byte {
	b = AppendString(b, r.Method)
	b = AppendBool(b, r.In)
	b = AppendBool(b, r.Out)
	b = AppendBool(b, r.Err)
	b = binary.AppendUvarint(b, uint64(r.Window))
	return append(b, r.Body...)
}

// CallRequest takes the request. Body aliases the payload.
func (d *Decoder) CallRequest() CallRequest {
	return CallRequest{
		Method: d.String(MaxWord), In: d.Bool(), Out: d.Bool(), Err: d.Bool(),
		Window: d.window(), Body: d.Rest(),
	}
}
