package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/sandbox"
)

// The control calls. Each takes and returns a JSON body; logs also streams.
const (
	callStart  = "command.start"
	callList   = "command.list"
	callWait   = "command.wait"
	callLogs   = "command.logs"
	callStdin  = "command.stdin"
	callSignal = "command.signal"
	callKill   = "command.kill"
	callInfo   = "sandbox.info"
	callStop   = "sandbox.stop"
)

// StartRequest asks for a background command.
type StartRequest struct {
	Argv            []string         `json:"argv"`
	Env             []string         `json:"env,omitempty"`
	Dir             string           `json:"dir,omitempty"`
	TTY             *sandbox.TTYSize `json:"tty,omitempty"`
	Stdin           bool             `json:"stdin,omitempty"`
	OutputLimit     int64            `json:"outputLimit,omitempty"`
	KeepDescendants bool             `json:"keepDescendants,omitempty"`
	Grace           time.Duration    `json:"grace,omitempty"`
}

// LogsRequest asks for the output of a background command.
type LogsRequest struct {
	ID     sandbox.CommandID `json:"id"`
	Stream sandbox.Stream    `json:"stream,omitempty"`
	Cursor int64             `json:"cursor,omitempty"`
	// Follow goes on until the command has ended.
	Follow bool `json:"follow,omitempty"`
}

// LogsResult tells where the output given ended.
type LogsResult struct {
	// Next is the cursor to go on with, an offset in the stream.
	Next int64 `json:"next"`
	// Dropped counts bytes after the cursor that were no longer kept.
	Dropped int64 `json:"dropped"`
	// Ended is true when nothing will follow.
	Ended bool `json:"ended"`
}

type idRequest struct {
	ID     sandbox.CommandID `json:"id"`
	Signal int               `json:"signal,omitempty"`
	Grace  time.Duration     `json:"grace,omitempty"`
}

// control answers the calls.
type control struct {
	sb       sandbox.Sandbox
	commands *sandbox.Commands
	busy     *activity
	stop     func()
}

// handle implements server.Handler. A failure travels inside the body, so that
// it arrives as the typed error it was.
func (c *control) handle(ctx context.Context, method string, body []byte, streams server.Streams) ([]byte, error) {
	result, err := c.dispatch(ctx, method, body, streams)
	var a answer
	if err != nil {
		a.Error = newFailure(err)
	} else if a.Result, err = json.Marshal(result); err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (c *control) dispatch(ctx context.Context, method string, body []byte, streams server.Streams) (any, error) {
	switch method {
	case callStart:
		return answerTo(body, func(r StartRequest) (any, error) { return c.start(ctx, r) })
	case callList:
		return c.commands.List(), nil
	case callWait:
		return answerTo(body, func(r idRequest) (any, error) { return c.commands.Wait(ctx, r.ID) })
	case callLogs:
		return answerTo(body, func(r LogsRequest) (any, error) { return c.logs(ctx, r, streams.Out) })
	case callStdin:
		return answerTo(body, func(r idRequest) (any, error) { return nil, c.stdin(ctx, r.ID, streams.In) })
	case callSignal:
		return answerTo(body, func(r idRequest) (any, error) { return nil, c.commands.Signal(ctx, r.ID, r.Signal) })
	case callKill:
		return answerTo(body, func(r idRequest) (any, error) { return c.commands.Kill(ctx, r.ID, r.Grace) })
	case callInfo:
		return c.sb.Info(), nil
	case callStop:
		c.stop()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown call %q: the owner process may be of another version", method)
}

// answerTo decodes the body for fn.
func answerTo[T any](body []byte, fn func(T) (any, error)) (any, error) {
	var req T
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, fmt.Errorf("malformed call: %w", err)
	}
	return fn(req)
}

// start starts a background command, which keeps the owner alive until it ends.
func (c *control) start(ctx context.Context, r StartRequest) (sandbox.CommandInfo, error) {
	env, err := envMap(r.Env)
	if err != nil {
		return sandbox.CommandInfo{}, err
	}
	if r.OutputLimit < 0 || r.OutputLimit > sandbox.MaxOutputLimit {
		return sandbox.CommandInfo{}, &proc.StartError{Reason: proc.BadSpec, What: fmt.Sprintf("output limit %d, at most %d bytes can be kept", r.OutputLimit, sandbox.MaxOutputLimit)}
	}
	cmd := sandbox.Command{Argv: r.Argv, Dir: r.Dir, TTY: r.TTY, Stdin: r.Stdin, KeepDescendants: r.KeepDescendants, Grace: r.Grace}
	release := c.busy.begin()
	info, err := c.commands.Start(ctx, cmd, env, sandbox.CommandOptions{OutputLimit: int(r.OutputLimit), Stdin: r.Stdin})
	if err != nil {
		release()
		return info, err
	}
	go func() {
		defer release()
		// It ends at the latest with the owner, which closes the commands.
		_, _ = c.commands.Wait(context.Background(), info.ID) // only the end matters
	}()
	return info, nil
}

// logs streams output from the cursor on.
func (c *control) logs(ctx context.Context, r LogsRequest, out io.Writer) (LogsResult, error) {
	if r.Stream == "" {
		r.Stream = sandbox.StreamStdout
	}
	const piece = 256 << 10
	res := LogsResult{Next: r.Cursor}
	for {
		var chunk sandbox.Chunk
		var err error
		if r.Follow {
			chunk, err = c.commands.Follow(ctx, r.ID, r.Stream, res.Next, piece)
		} else {
			chunk, err = c.commands.Read(r.ID, r.Stream, res.Next, piece)
		}
		if err != nil {
			return res, err
		}
		res.Dropped += chunk.Dropped
		res.Next, res.Ended = chunk.Next, chunk.End
		if len(chunk.Data) > 0 {
			if _, err := out.Write(chunk.Data); err != nil {
				return res, err
			}
			continue
		}
		if !r.Follow || chunk.End {
			return res, nil
		}
	}
}

// stdin passes everything on and closes the command's standard input.
func (c *control) stdin(ctx context.Context, id sandbox.CommandID, in io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, err := c.commands.WriteStdin(ctx, id, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return c.commands.CloseStdin(id)
		}
		if err != nil {
			return err
		}
	}
}
