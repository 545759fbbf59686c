package libpod

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/workberth/workberth/internal/container"
)

// maxText bounds the engine's words in an error, in bytes.
const maxText = 2 << 10

// RefusalError is an answer of the engine that says no. It matches container.ErrNotFound or
// container.ErrConflict where it means that.
type RefusalError struct {
	// Op is what was tried, as "start container abc".
	Op string
	// Status is that of HTTP; 200 when the refusal came after the answer had begun.
	Status int
	// Text is the engine's own, at most 2 KiB.
	Text string

	kind error
}

// Error tells what was tried and what the engine said.
func (e *RefusalError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s: the engine answers with status %d and no reason", e.Op, e.Status)
	}
	return e.Op + ": " + e.Text
}

// Unwrap returns what the refusal means, or nil.
func (e *RefusalError) Unwrap() error { return e.kind }

// UnreachableError says that the engine did not answer, or not to the end. It matches
// container.ErrUnreachable and whatever Err matches.
type UnreachableError struct {
	// Op is what was tried.
	Op string
	// Address is the engine's.
	Address string
	Err     error
}

// Error names the engine, what was tried and the reason.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s: the engine at %s does not answer: %v", e.Op, e.Address, e.Err)
}

// Unwrap returns the reason.
func (e *UnreachableError) Unwrap() []error { return []error{container.ErrUnreachable, e.Err} }

var (
	errClosed  = errors.New("the client is closed")
	errTooLong = errors.New("the answer is too long")
	errNoName  = errors.New("no name of a container or image")
)

// senseless is an answer that cannot be understood.
func senseless(op string, err error) error {
	return fmt.Errorf("%s: the engine's answer makes no sense: %w", op, err)
}

// readable makes words of the engine fit for an error: valid, without control characters, and at
// most maxText bytes.
func readable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if len(text) <= maxText {
		return text
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
