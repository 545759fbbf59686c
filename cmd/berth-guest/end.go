//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/workberth/workberth/internal/guest/reaper"
)

// endBound bounds ending a session.
const endBound = 15 * time.Second

// endSession ends a session whose connection is lost, and tells how many processes it had.
func endSession(w io.Writer, tag string) error {
	if !isTag(tag) {
		return &flagError{fmt.Sprintf("%q is not 16 hexadecimal digits", tag)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	n, err := reaper.New(reaper.Options{NoSpare: true}).EndSession(ctx, tag)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "ended %d\n", n)
	return err
}
