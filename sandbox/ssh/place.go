package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/sandbox"
)

// noHelper stands for a helper that is not to be had.
const noHelper = "-"

// maxCaches is how many directories of a host are tried; an honest one names five.
const maxCaches = 8

// placeError tells that the helper could not be put on a host.
type placeError struct{ tries []error }

func (e *placeError) Error() string {
	texts := make([]string, len(e.tries))
	for i, err := range e.tries {
		texts[i] = err.Error()
	}
	return "no directory of the host can hold the helper: " + strings.Join(texts, "; ")
}

// alienError tells a host that no helper is at hand for.
type alienError struct{ system, arch string }

func (e *alienError) Error() string {
	return fmt.Sprintf("the host is %s on %s, for which there is no helper here", sshclient.OneLine(e.system), sshclient.OneLine(e.arch))
}

// call calls the function with the helper in place, which is put there when it is missing.
func (b *Backend) call(ctx context.Context, g *sshclient.Group, what string, args ...string) (*call, error) {
	helpers := make(map[string]helperbin.Helper)
	words := []string{what}
	for _, arch := range architectures() {
		sum := noHelper
		if h, err := b.opts.Helper(arch); err == nil {
			if sum, err = h.SHA256(); err != nil {
				return nil, err
			}
			helpers[arch] = h
		} else {
			b.log.Debug("no helper", "arch", arch, "error", err)
		}
		words = append(words, sum)
	}
	if len(helpers) == 0 {
		_, err := b.opts.Helper(architectures()[0])
		return nil, &sandbox.Problem{What: "the guest helper", Rule: err.Error(), Remedy: "see: berth doctor", Err: errors.Join(sandbox.ErrUnavailable, err)}
	}
	words = append(words, args...)
	for placed := false; ; placed = true {
		c, err := b.begin(ctx, g, words...)
		if err != nil {
			return nil, err
		}
		switch c.word {
		case "missing":
		case "alien":
			c.session.Abort()
			return nil, alien(c.rest)
		default:
			if _, ok := helpers[c.arch]; !ok {
				c.session.Abort()
				return nil, &alienError{"a system", c.arch}
			}
			return c, nil
		}
		c.session.Abort()
		if _, ok := helpers[c.rest]; !ok {
			return nil, &alienError{"a system", c.rest}
		}
		if placed {
			return nil, &placeError{[]error{errors.New("it was put in place and is not there any more")}}
		}
		if err := b.place(ctx, g, c.caches, helpers[c.rest]); err != nil {
			return nil, err
		}
	}
}

func alien(rest string) error {
	e := &alienError{}
	_, _ = fmt.Sscan(rest, &e.system, &e.arch) // what cannot be read stays empty
	return e
}

// place puts the helper into the first cache directory that can hold it.
func (b *Backend) place(ctx context.Context, g *sshclient.Group, caches []string, h helperbin.Helper) error {
	sum, err := h.SHA256()
	if err != nil {
		return err
	}
	failed := &placeError{}
	for _, dir := range caches[:min(len(caches), maxCaches)] {
		path, err := b.placeIn(ctx, g, dir, h.Path, sum)
		if err == nil {
			b.log.Info("the helper was put in place", "host", g.Settings().String(), "path", path)
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, sshclient.ErrCut) {
			return err
		}
		failed.tries = append(failed.tries, fmt.Errorf("%s: %w", sshclient.OneLine(dir), err))
	}
	return failed
}

// placeIn sends the helper, which the host verifies and tries before it gives it its name.
func (b *Backend) placeIn(ctx context.Context, g *sshclient.Group, dir, file, sum string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	c, err := b.begin(ctx, g, "place", dir, sum, strconv.FormatInt(info.Size(), 10))
	if err != nil {
		return "", err
	}
	defer c.session.Abort()
	if c.word != "send" {
		return "", errors.New(sshclient.OneLine(c.rest))
	}
	stop := context.AfterFunc(ctx, c.session.Abort)
	defer stop()
	_, sendErr := io.Copy(c.session, f)
	if err := c.session.Close(); sendErr == nil {
		sendErr = err
	}
	_, err = c.answer()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", errors.Join(sendErr, err)
	case c.word != "placed":
		return "", errors.New(sshclient.OneLine(c.rest))
	}
	return c.rest, nil
}
