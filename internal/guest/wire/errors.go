package wire

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
)

// RemoteError is an error as the peer told it. It matches every sentinel and
// errno the original matched, and unwraps to its details.
type RemoteError struct {
	// Code is a word a control call's handler chose for its callers, or empty.
	Code string
	// Text is the peer's message, made printable.
	Text string
	// Hint says what to do next; it may be empty.
	Hint string

	is []error
}

// Error returns the peer's message.
func (e *RemoteError) Error() string { return e.Text }

// Unwrap returns what the error matches: sentinels, the errno, details.
func (e *RemoteError) Unwrap() []error { return e.is }

// maxErrno is the largest errno a Linux kernel returns.
const maxErrno = 4095

// What kind of typed error the details rebuild.
const (
	detailNone byte = iota
	detailConflict
	detailLimit
	detailUnsupported
	detailStart
)

var startReasons = []proc.StartReason{
	proc.NoCommand, proc.NotExecutable, proc.NoDirectory, proc.NotDirectory,
	proc.OutsideDir, proc.LimitReached, proc.BadSpec, proc.Internal,
}

// AppendError appends an error: the codes it matches, its errno, what a
// fsbridge.PathError says, its text, and the details of typed errors. Texts that
// are too long are cut; it never fails.
func AppendError(b []byte, err error) []byte {
	mark := len(b)
	b = append(b, 0)
	for code, sentinel := range errorCodes {
		if errors.Is(err, sentinel) {
			b = append(b, byte(code))
			b[mark]++
		}
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	b = binary.AppendUvarint(b, errnoOut(errno))

	text, hint := err, ""
	var pathErr *fsbridge.PathError
	isPath := errors.As(err, &pathErr)
	b = AppendBool(b, isPath)
	if isPath {
		b = AppendString(b, clip(pathErr.Op, MaxWord))
		b = AppendString(b, clip(pathErr.Path, MaxPath))
		text, hint = pathErr.Err, pathErr.Hint
	}
	var remote *RemoteError
	code := ""
	if errors.As(err, &remote) {
		code = remote.Code
		if hint == "" {
			hint = remote.Hint
		}
	}
	b = AppendString(b, clip(code, MaxWord))
	b = AppendString(b, clip(hint, MaxText))
	return appendDetail(b, err, text)
}

// appendDetail appends the typed error, if any, and the text. The text of a
// command that could not start is that of its cause, since StartError.Error puts
// the rest before it.
func appendDetail(b []byte, err, text error) []byte {
	var (
		conflict    *fsbridge.ConflictError
		limit       *fsbridge.LimitError
		unsupported *fsbridge.UnsupportedError
		start       *proc.StartError
	)
	switch {
	case errors.As(err, &conflict):
		b = append(b, detailConflict)
		b = AppendString(b, clip(string(conflict.Current), 64))
		b = AppendString(b, clip(string(conflict.Expected), MaxWord))
	case errors.As(err, &limit):
		b = append(b, detailLimit)
		b = AppendString(b, clip(limit.What, MaxWord))
		b = binary.AppendUvarint(b, uint64(max(limit.Limit, 0)))
		b = binary.AppendUvarint(b, uint64(max(limit.Actual, 0)))
	case errors.As(err, &unsupported):
		b = append(b, detailUnsupported)
		b = AppendString(b, clip(string(unsupported.Capability), MaxWord))
	case errors.As(err, &start):
		b = append(b, detailStart)
		b = appendEnum(b, startReasons, start.Reason)
		b = AppendString(b, clip(start.What, MaxPath))
		text = start.Err
	default:
		b = append(b, detailNone)
	}
	if text == nil {
		return AppendString(b, "")
	}
	return AppendString(b, clip(text.Error(), MaxText))
}

// Error takes an error. It is a *fsbridge.PathError, *proc.StartError or
// *RemoteError, and never nil.
func (d *Decoder) Error() error {
	var is []error
	for range d.Count(len(errorCodes), 1) {
		code := int(d.Byte())
		if code >= len(errorCodes) {
			d.fail("unknown error code %d", code)
			break
		}
		is = append(is, errorCodes[code])
	}
	var errno error
	if e := errnoIn(d.Upto(maxErrno)); e != 0 {
		errno = e
		is = append(is, errno)
	}
	var pathErr *fsbridge.PathError
	if d.Bool() {
		pathErr = &fsbridge.PathError{Op: Printable(d.String(MaxWord), MaxWord), Path: d.String(MaxPath)}
	}
	remote := &RemoteError{
		Code: Printable(d.String(MaxWord), MaxWord),
		Hint: Printable(d.String(MaxText), MaxText),
	}
	start, detail := d.detail()
	remote.Text = Printable(d.String(MaxText), MaxText)
	if d.err != nil {
		return d.err
	}
	if detail != nil {
		is = append(is, detail)
	}
	remote.is = is
	switch {
	case start != nil:
		start.Err = startCause(remote, errno)
		return start
	case remote.Text == "":
		remote.Text = "failed without a reason"
	}
	if pathErr != nil {
		pathErr.Err, pathErr.Hint = remote, remote.Hint
		return pathErr
	}
	return remote
}

// startCause is what a StartError wraps: the errno itself where the peer said no
// more than that, nothing where it said nothing.
func startCause(remote *RemoteError, errno error) error {
	if remote.Text == "" || errno != nil && remote.Text == errno.Error() {
		return errno
	}
	return remote
}

// detail takes what rebuilds a typed error: of a command that could not start, or
// one that the error wraps.
func (d *Decoder) detail() (start *proc.StartError, err error) {
	switch kind := d.Byte(); kind {
	case detailNone:
	case detailConflict:
		return nil, &fsbridge.ConflictError{
			Current: d.Digest(), Expected: fsbridge.Digest(Printable(d.String(MaxWord), MaxWord)),
		}
	case detailLimit:
		return nil, &fsbridge.LimitError{
			What: Printable(d.String(MaxWord), MaxWord), Limit: d.Size(), Actual: d.Size(),
		}
	case detailUnsupported:
		return nil, &fsbridge.UnsupportedError{
			Capability: fsbridge.Capability(Printable(d.String(MaxWord), MaxWord)),
		}
	case detailStart:
		return &proc.StartError{
			Reason: takeEnum(d, "start reason", startReasons), What: d.String(MaxPath),
		}, nil
	default:
		d.fail("unknown error detail %d", kind)
	}
	return nil, nil
}
