package libpod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/workberth/workberth/internal/container"
)

const (
	maxAnswer  = 16 << 20 // bytes of an answer
	maxRefusal = 64 << 10 // bytes of an answer that says no
)

// call is one request of the API.
type call struct {
	// op is what is tried, for errors.
	op     string
	method string
	// path is below the version, with its parts escaped.
	path  string
	query url.Values
	body  io.Reader
	// kind is the content type of the body.
	kind string
	// upgrade asks for the connection itself.
	upgrade bool
}

// answer is what the engine sends. It must be closed.
type answer struct {
	status int
	header http.Header
	body   io.ReadCloser

	c    *Client
	ctx  context.Context
	op   string
	done func()
}

// name escapes the name or id of a container or image for a path.
func name(s string) (string, error) {
	if s == "" || s == "." || s == ".." {
		return "", errNoName
	}
	return url.PathEscape(s), nil
}

// do makes a call in the negotiated version. Any status but 2xx and 304 is an error.
func (c *Client) do(ctx context.Context, r call) (*answer, error) {
	version, err := c.negotiate(ctx, r.op)
	if err != nil {
		return nil, err
	}
	r.path = "/v" + version + "/libpod" + r.path
	return c.send(ctx, r)
}

// send makes a call whose path is complete.
func (c *Client) send(ctx context.Context, r call) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(c.open, cancel)
	done := func() {
		unbind()
		cancel()
	}
	a, err := c.begin(ctx, r)
	if err != nil {
		err = c.fault(ctx, r.op, err)
		done()
		return nil, err
	}
	a.done = done
	if a.status/100 == 2 || a.status == http.StatusNotModified {
		return a, nil
	}
	defer a.Close()
	return nil, a.refusal()
}

// begin sends a request and reads the head of the answer.
func (c *Client) begin(ctx context.Context, r call) (*answer, error) {
	// The host is not looked at; the connection is chosen by the transport.
	target := "http://podman" + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, err
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if r.upgrade {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "tcp")
	}
	if r.body == nil && !r.upgrade {
		// It may be sent again where a kept connection turns out to be dead, as after a restart of
		// the engine: done twice it is as if done once. Nothing of this header goes out.
		req.Header["Idempotency-Key"] = nil
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	return &answer{status: res.StatusCode, header: res.Header, body: res.Body, c: c, ctx: ctx, op: r.op}, nil
}

// fault says why an answer did not come, or not to its end.
func (c *Client) fault(ctx context.Context, op string, err error) error {
	if c.open.Err() != nil {
		return &UnreachableError{Op: op, Address: c.address, Err: errClosed}
	}
	if ctx.Err() != nil {
		return &interruptedError{op: op, err: ctx.Err()}
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return &UnreachableError{Op: op, Address: c.address, Err: err}
}

// interruptedError is a call that its caller gave up. It matches the error of the context.
type interruptedError struct {
	op  string
	err error
}

func (e *interruptedError) Error() string { return e.op + ": " + e.err.Error() }
func (e *interruptedError) Unwrap() error { return e.err }

// Close gives the connection back if the answer was read to its end, and closes it otherwise.
func (a *answer) Close() error {
	err := a.body.Close()
	a.done()
	return err
}

// read returns the answer, which must not have more than limit bytes.
func (a *answer) read(limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(a.body, limit+1))
	if err != nil {
		return nil, a.c.fault(a.ctx, a.op, err)
	}
	if int64(len(raw)) > limit {
		return nil, senseless(a.op, errTooLong)
	}
	return raw, nil
}

// refusal turns an answer that says no into an error.
func (a *answer) refusal() error {
	// Of an answer that is cut short, what came is still the best there is to tell.
	raw, _ := io.ReadAll(io.LimitReader(a.body, maxRefusal))
	e := &RefusalError{Op: a.op, Status: a.status, Text: refusalText(raw)}
	switch {
	case a.status == http.StatusNotFound, a.status == http.StatusInternalServerError && strings.HasSuffix(e.Text, noSuchContainer):
		e.kind = container.ErrNotFound
	case a.status == http.StatusConflict:
		e.kind = container.ErrConflict
	}
	return e
}

// noSuchContainer is how an engine ends its words, with the status of an internal error, when a
// container is removed while it looks at it.
const noSuchContainer = ": no such container"

// refusalText finds the engine's words in an answer that says no.
func refusalText(raw []byte) string {
	var model ErrorModel
	if json.Unmarshal(raw, &model) != nil || model.Message == "" && model.Because == "" {
		return readable(string(raw))
	}
	text := model.Message
	if !strings.Contains(text, model.Because) {
		text = strings.TrimPrefix(text+": "+model.Because, ": ")
	}
	return readable(text)
}

// get makes a call and decodes its answer into out; nil means that the answer tells nothing more.
func (c *Client) get(ctx context.Context, r call, out any) error {
	a, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer a.Close()
	raw, err := a.read(maxAnswer)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return senseless(r.op, err)
	}
	return nil
}

// post makes a call that sends in as JSON.
func (c *Client) post(ctx context.Context, r call, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r.method, r.body, r.kind = http.MethodPost, bytes.NewReader(raw), "application/json"
	return c.get(ctx, r, out)
}
