package ssh

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/sshclient"
)

// remote is the function that the host's shell runs.
//
//go:embed remote.sh
var remote string //nolint:gochecknoglobals // the content of a file

// loginCommand is the only command line that a login shell gets to see.
const loginCommand = "exec /bin/sh"

// Bounds of what a host says.
const (
	// maxNoise is how much may come that is not an answer: banners, messages of the day.
	maxNoise = 1 << 20
	// maxLine bounds one line of an answer.
	maxLine = 64 << 10
	// maxAnswer bounds the lines of an answer.
	maxAnswer = 256
	// answerBound is how long the host's shell may keep silent.
	answerBound = 30 * time.Second
)

// call is a function call on a host that has been answered up to a last word.
type call struct {
	session *sshclient.Session
	in      *bufio.Reader
	mark    string
	// word and rest are the last line; env, caches, workspace and arch came before it.
	word, rest string
	env        []string
	caches     []string
	workspace  string
	arch       string
}

// silentError tells a host whose shell did not answer.
type silentError struct {
	said   string
	stderr string
	err    error
}

func (e *silentError) Error() string {
	s := "its shell does not answer"
	if e.said != "" {
		s += fmt.Sprintf("; it says %.300q", e.said)
	}
	if e.stderr != "" {
		s += fmt.Sprintf("; messages: %q", e.stderr)
	}
	return fmt.Sprintf("%s: %v", s, e.err)
}

func (e *silentError) Unwrap() error { return e.err }

// begin calls the function with some words and reads up to a word that ends the answer.
// The caller aborts or closes the session.
func (b *Backend) begin(ctx context.Context, g *sshclient.Group, words ...string) (*call, error) {
	session, err := g.Session(ctx)
	if err != nil {
		return nil, err
	}
	c := &call{session: session, mark: newMark()}
	ctx, cancel := context.WithTimeoutCause(ctx, answerBound, fmt.Errorf("nothing came within %v", answerBound))
	defer cancel()
	if err := session.Start(ctx, loginCommand); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, session.Abort)
	defer stop()
	c.in = bufio.NewReaderSize(session, maxLine)
	// What follows on standard input is never for the shell, whatever becomes of the call.
	script := remote + "berth " + quoteWords(append([]string{c.mark}, words...)) + "; exit\n"
	_, err = io.WriteString(session, script)
	noise, readErr := c.answer()
	if readErr == nil {
		return c, nil
	}
	session.Abort()
	switch {
	case ctx.Err() != nil:
		readErr = context.Cause(ctx)
	case err != nil && errors.Is(readErr, io.EOF):
		readErr = err
	}
	<-session.Done()
	if ended, _ := session.Ended(); ended != nil && errors.Is(ended, sshclient.ErrCut) {
		readErr = ended
	}
	return nil, &silentError{said: noise, stderr: session.Stderr(), err: readErr}
}

// answer reads lines up to one that ends the answer. It returns the end of what was said
// beside it.
func (c *call) answer() (noise string, err error) {
	budget := maxNoise
	for n := 0; n < maxAnswer; {
		text, err := c.in.ReadSlice('\n')
		line := string(text)
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil // a long line of noise, in pieces
		}
		// A notice without a line break may stand before the mark.
		_, after, ok := strings.Cut(line, "berth:"+c.mark+" ")
		if !ok {
			budget -= len(line)
			if s := strings.TrimSpace(line); s != "" {
				noise = s
			}
			if budget < 0 {
				return noise, fmt.Errorf("more than %d bytes came that are no answer", maxNoise)
			}
			if err != nil {
				return noise, err
			}
			continue
		}
		if err != nil {
			return noise, err
		}
		n++
		if c.take(strings.TrimSuffix(after, "\n")) {
			return noise, nil
		}
	}
	return noise, fmt.Errorf("more than %d lines of an answer came", maxAnswer)
}

// take keeps one line and reports whether it ends the answer.
func (c *call) take(line string) (last bool) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "env":
		c.env = append(c.env, rest)
	case "workspace":
		c.workspace = rest
	case "arch":
		c.arch = rest
	case "cache":
		c.caches = append(c.caches, rest)
	default:
		c.word, c.rest = word, rest
		return true
	}
	return false
}

// stream is what follows the answer, both ways. Close ends the input of what runs there.
type stream struct{ *call }

func (s stream) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s stream) Write(p []byte) (int, error) { return s.session.Write(p) }
func (s stream) Close() error                { return s.session.Close() }

// newMark marks the answers of one call.
func newMark() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// quoteWords quotes words for /bin/sh.
func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
