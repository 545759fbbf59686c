package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/sandbox"
)

// StartBackground starts a background command.
func (h *Handle) StartBackground(ctx context.Context, r StartRequest) (sandbox.CommandInfo, error) {
	var info sandbox.CommandInfo
	err := h.call(ctx, callStart, r, &info, nil, nil)
	return info, err
}

// Commands lists the background commands in the order they were started.
func (h *Handle) Commands(ctx context.Context) ([]sandbox.CommandInfo, error) {
	var list []sandbox.CommandInfo
	err := h.call(ctx, callList, nil, &list, nil, nil)
	return list, err
}

// Wait returns when a background command has ended.
func (h *Handle) Wait(ctx context.Context, id sandbox.CommandID) (sandbox.CommandInfo, error) {
	var info sandbox.CommandInfo
	err := h.call(ctx, callWait, idRequest{ID: id}, &info, nil, nil)
	return info, err
}

// Logs writes the output of a background command to w.
func (h *Handle) Logs(ctx context.Context, r LogsRequest, w io.Writer) (LogsResult, error) {
	var res LogsResult
	err := h.call(ctx, callLogs, r, &res, nil, w)
	return res, err
}

// Stdin passes r on to the standard input of a background command and closes it
// at the end.
func (h *Handle) Stdin(ctx context.Context, id sandbox.CommandID, r io.Reader) error {
	return h.call(ctx, callStdin, idRequest{ID: id}, nil, r, nil)
}

// Signal sends a signal to a background command's process group.
func (h *Handle) Signal(ctx context.Context, id sandbox.CommandID, signal int) error {
	return h.call(ctx, callSignal, idRequest{ID: id, Signal: signal}, nil, nil, nil)
}

// Kill ends everything a background command started. Zero is the usual grace.
func (h *Handle) Kill(ctx context.Context, id sandbox.CommandID, grace time.Duration) (sandbox.TerminateResult, error) {
	var res sandbox.TerminateResult
	err := h.call(ctx, callKill, idRequest{ID: id, Grace: grace}, &res, nil, nil)
	return res, err
}

// Info describes the sandbox as it is now.
func (h *Handle) Info(ctx context.Context) (sandbox.Info, error) {
	var info sandbox.Info
	err := h.call(ctx, callInfo, nil, &info, nil, nil)
	return info, err
}

// Stop asks the owner to end, and the sandbox with it, and waits until its
// process has gone.
func (h *Handle) Stop(ctx context.Context) error {
	info, err := h.Info(ctx)
	if err != nil {
		return err
	}
	// An owner that ends may not get to answering.
	var lost *client.LostError
	if err := h.call(ctx, callStop, nil, nil, nil, nil); err != nil && (!errors.As(err, &lost) || !lost.Sent) {
		return err
	}
	tick := time.NewTicker(2 * time.Millisecond) // it is no child of ours
	defer tick.Stop()
	for info.Owner.Alive() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// call makes one control call.
func (h *Handle) call(ctx context.Context, method string, in, out any, r io.Reader, w io.Writer) error {
	var a answer
	if err := h.conn.Call(ctx, method, in, &a, client.Streams{In: r, Out: w}); err != nil {
		return fmt.Errorf("ask the owner process: %w", err)
	}
	if a.Error != nil {
		return a.Error.err()
	}
	if out == nil || len(a.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(a.Result, out); err != nil {
		return fmt.Errorf("%s: malformed answer: %w", method, err)
	}
	return nil
}
