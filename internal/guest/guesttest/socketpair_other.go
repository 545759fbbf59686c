//go:build !unix

package guesttest

import "errors"

func socketpair() ([2]int, error) { return [2]int{}, errors.ErrUnsupported }
