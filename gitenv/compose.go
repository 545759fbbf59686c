package gitenv

import (
	"fmt"
	"strings"
)

// Compose returns the value of [ParametersVar] for a child: the base, one blank, the fragment. Keeps GIT-03, GIT-05,
// GIT-07, GIT-08 and GIT-09.
//
// The base is *explicit if explicit is not nil, otherwise *inherited if that is not nil, otherwise empty. An explicit
// empty value counts: it drops what is inherited. With an empty base the result is the fragment alone, with an empty
// fragment it is the base alone.
//
// Both are opaque and appear in the result byte for byte. The base must be one that git accepts ([Parse]): appending to
// a broken value would hand git an error whose cause nobody can see, so Compose returns a *[BaseError] instead. Of the
// fragment only the quotes are checked ([CheckBalance], a *[FragmentError]). If [Parse] accepts the fragment, it accepts
// the result, and the result means the base's settings followed by the fragment's.
//
// The result may be longer than the operating system lets one environment string be (128 KiB with 4 KiB pages on
// Linux); starting the child then fails with "argument list too long".
func Compose(inherited, explicit *string, fragment string) (string, error) {
	base := ""
	switch {
	case explicit != nil:
		base = *explicit
	case inherited != nil:
		base = *inherited
	}
	if err := CheckBalance(fragment); err != nil {
		return "", err
	}
	if _, err := Parse(base); err != nil {
		return "", &BaseError{Explicit: explicit != nil, Err: err}
	}
	if base == "" || fragment == "" {
		return base + fragment, nil
	}
	return base + " " + fragment, nil
}

// CheckBalance reports whether every quote of the fragment is closed, so that what is appended behind it starts a new
// item. Outside single quotes a backslash takes the next byte's meaning away; inside it means itself. A NUL byte is
// refused too, since no environment can hold it. The error is a *[FragmentError] that matches [ErrUnbalanced] or
// [ErrNUL].
//
// A balanced fragment may still be one git refuses; [Parse] tells.
func CheckBalance(fragment string) error {
	if i := strings.IndexByte(fragment, 0); i >= 0 {
		return &FragmentError{Offset: i, Err: ErrNUL}
	}
	for i := 0; i < len(fragment); i++ {
		switch fragment[i] {
		case '\\':
			if i+1 == len(fragment) {
				return &FragmentError{Offset: i, Err: fmt.Errorf("%w: a backslash at the end escapes nothing", ErrUnbalanced)}
			}
			i++
		case '\'':
			n := strings.IndexByte(fragment[i+1:], '\'')
			if n < 0 {
				return &FragmentError{Offset: i, Err: fmt.Errorf("%w: the single quote is not closed", ErrUnbalanced)}
			}
			i += n + 1
		}
	}
	return nil
}
