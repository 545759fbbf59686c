//go:build linux

package reaper

import (
	"encoding/binary"
	"math"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// message is the kind of a control message.
type message uint8

// The control messages. The end of the connection is the last one in either
// direction.
const (
	// To the reaper. One that belongs to an earlier command is ignored.
	msgStart     message = 1 + iota // startOrder, with its files; not before msgGone
	msgSignal                       // signalOrder
	msgTerminate                    // terminateOrder

	// From the reaper.
	msgForking    // nothing; from here on something may run
	msgStarted    // uvarint pid
	msgFailed     // startFailure; nothing was run, the reaper is free
	msgExited     // proc.Status of the direct child
	msgTerminated // uvarint id, proc.TerminateResult
	msgGone       // nothing; ECHILD was seen, the reaper is free
)

// startOrder says what to run. It travels with these files: the working
// directory, standard input, output and error, and with Keep the reading ends of
// what the command writes.
type startOrder struct {
	turn uint64    // counts the commands of a reaper
	spec proc.Spec // complete: Env has the marker, Dir is a file
}

func (o startOrder) append(b []byte) []byte {
	return wire.ExecRequest{Spec: o.spec}.Append(binary.AppendUvarint(b, o.turn))
}

func decodeStart(payload []byte) (startOrder, error) {
	d := wire.NewDecoder(payload)
	o := startOrder{turn: d.Uvarint()}
	o.spec = d.ExecRequest().Spec
	return o, d.Finish()
}

// The places of the files of a startOrder.
const (
	fileDir = iota
	fileStdin
	fileStdout
	fileStderr
	fileKeep // and what follows
)

// startFailure is a proc.StartError on its way from a reaper.
type startFailure struct {
	reason proc.StartReason
	what   string
	errno  syscall.Errno
	detail string
}

func (f startFailure) append(b []byte) []byte {
	b = wire.AppendString(b, string(f.reason))
	b = wire.AppendString(b, f.what[:min(len(f.what), wire.MaxPath)])
	b = binary.AppendUvarint(b, uint64(f.errno))
	return wire.AppendString(b, f.detail)
}

func decodeFailure(payload []byte) (startFailure, error) {
	d := wire.NewDecoder(payload)
	f := startFailure{
		reason: proc.StartReason(d.String(wire.MaxWord)), what: d.String(wire.MaxPath),
		errno: syscall.Errno(d.Upto(math.MaxInt32)), detail: d.String(wire.MaxText),
	}
	return f, d.Finish()
}

// err is the failure as the caller sees it.
func (f startFailure) err() *proc.StartError {
	e := &proc.StartError{Reason: f.reason, What: f.what}
	switch {
	case f.detail != "":
		e.Err = &detailError{text: f.detail, errno: f.errno}
	case f.errno != 0:
		e.Err = f.errno
	}
	return e
}

// detailError explains an errno.
type detailError struct {
	text  string
	errno syscall.Errno
}

// Error gives the explanation.
func (e *detailError) Error() string { return e.text }

// Unwrap gives the errno, if there is one.
func (e *detailError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// signalOrder asks for a signal to the direct child's process group.
type signalOrder struct {
	turn   uint64
	signal int
}

func (o signalOrder) append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(b, o.turn), int64(o.signal))
}

func decodeSignal(payload []byte) (signalOrder, error) {
	d := wire.NewDecoder(payload)
	o := signalOrder{turn: d.Uvarint(), signal: d.Int()}
	return o, d.Finish()
}

// terminateOrder asks a reaper to end its tree. It is answered with msgTerminated
// and the same id, or by msgGone.
type terminateOrder struct {
	turn  uint64
	id    uint64
	grace time.Duration
}

func (o terminateOrder) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, o.turn), o.id)
	return binary.AppendVarint(b, int64(o.grace))
}

func decodeTerminate(payload []byte) (terminateOrder, error) {
	d := wire.NewDecoder(payload)
	o := terminateOrder{turn: d.Uvarint(), id: d.Uvarint(), grace: time.Duration(d.Varint())}
	return o, d.Finish()
}

// terminated answers a terminateOrder.
type terminated struct {
	id     uint64
	result proc.TerminateResult
}

func (t terminated) append(b []byte) []byte {
	return wire.AppendTerminateResult(binary.AppendUvarint(b, t.id), t.result)
}

func decodeTerminated(payload []byte) (terminated, error) {
	d := wire.NewDecoder(payload)
	t := terminated{id: d.Uvarint(), result: d.TerminateResult()}
	return t, d.Finish()
}

func decodeStatus(payload []byte) (proc.Status, error) {
	d := wire.NewDecoder(payload)
	s := d.Status()
	return s, d.Finish()
}

// appendNumber and decodeNumber carry a pid.
func appendNumber(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func decodeNumber(payload []byte) (int, error) {
	d := wire.NewDecoder(payload)
	n := d.Varint()
	return int(n), d.Finish()
}
