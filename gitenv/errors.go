package gitenv

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. The typed errors of this package unwrap to them.
var (
	// ErrMalformed means that git refuses the value: every git command that saw it would end with status 128.
	ErrMalformed = errors.New("not a value git accepts")
	// ErrUnbalanced means that a quote in a fragment is not closed.
	ErrUnbalanced = errors.New("unbalanced quote")
	// ErrKey means that a configuration key has not the form section.name or section.subsection.name.
	ErrKey = errors.New("invalid config key")
	// ErrNUL means that a NUL byte was found; no environment variable can hold one.
	ErrNUL = errors.New("NUL byte")
	// ErrPlacement means that a child or an attempt does not say where it runs, or says it with an unknown word.
	ErrPlacement = errors.New("unknown placement")
	// ErrPath means that a path cannot be made a safe.directory.
	ErrPath = errors.New("path cannot be a safe.directory")
)

// A SyntaxError says where and why git would refuse a value. It unwraps to [ErrMalformed], and to [ErrKey] or
// [ErrNUL] where that is the reason. Its text holds nothing of the value, which may contain credentials.
type SyntaxError struct {
	// Var names the variable, for example GIT_CONFIG_PARAMETERS.
	Var string
	// Offset is the position in bytes, from 0, of the first byte that breaks a rule. It is the start of the item
	// where the item is well quoted but its key is refused, and the opening quote where a quote is not closed.
	Offset int
	// Reason names the rule.
	Reason string
	// Kind is the closest sentinel beside ErrMalformed, or nil.
	Kind error
}

// Error returns the variable, the offset and the rule.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s (git would refuse it)", e.Var, e.Offset, e.Reason)
}

// Unwrap makes the error match [ErrMalformed] and its Kind.
func (e *SyntaxError) Unwrap() []error {
	if e.Kind == nil {
		return []error{ErrMalformed}
	}
	return []error{ErrMalformed, e.Kind}
}

// A BaseError says that the value a fragment was to be appended to is itself one that git refuses, so that appending
// would only hide who broke it. It unwraps to the [SyntaxError].
type BaseError struct {
	// Explicit is true if the value was set by the native side, false if it was inherited.
	Explicit bool
	// Err is the reason, a *SyntaxError.
	Err error
}

// Error names the source of the value, the reason and the way out.
func (e *BaseError) Error() string {
	if e.Explicit {
		return fmt.Sprintf("gitenv: cannot append to the explicitly set value: %v; correct or unset it in the runtime's settings", e.Err)
	}
	return fmt.Sprintf("gitenv: cannot append to the inherited value: %v; correct or unset it in the environment the harness is started from", e.Err)
}

// Unwrap returns the reason.
func (e *BaseError) Unwrap() error { return e.Err }

// A FragmentError says why a fragment was refused. It unwraps to [ErrUnbalanced], [ErrNUL] or a [SyntaxError].
type FragmentError struct {
	// Offset is the position in bytes, from 0, of the opening quote that is not closed, or of the refused byte.
	Offset int
	// Err is the reason.
	Err error
}

// Error names the offset, the reason and the way out.
func (e *FragmentError) Error() string {
	return fmt.Sprintf("gitenv: fragment refused at byte %d: %v; build it with gitenv.Fragment", e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *FragmentError) Unwrap() error { return e.Err }

// A PairError says which pair of a list handed to [Fragment] was refused. It unwraps to [ErrKey], [ErrNUL] or
// another reason. Neither key nor value is part of the text.
type PairError struct {
	// Index is the position of the pair, from 0.
	Index int
	// Err is the reason.
	Err error
}

// Error names the position and the reason.
func (e *PairError) Error() string { return fmt.Sprintf("gitenv: pair %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *PairError) Unwrap() error { return e.Err }
