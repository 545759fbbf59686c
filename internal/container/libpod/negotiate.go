package libpod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	// oldest is the first version that is spoken.
	oldest = "4.0.0"
	// newest is the last version that is known. Of later engines this one is asked for, which
	// they serve in its own form.
	newest = "5.4.2"
	// versionHeader is where a Podman service tells its version.
	versionHeader = "Libpod-Api-Version"
)

var errNoPodman = errors.New("this is no Podman service")

// negotiate returns the version of the protocol in use, after asking the engine once.
func (c *Client) negotiate(ctx context.Context, op string) (string, error) {
	if v := c.api.Load(); v != nil {
		return *v, nil
	}
	a, err := c.send(ctx, call{op: op, method: http.MethodGet, path: "/libpod/_ping"})
	if err != nil {
		var refusal *RefusalError
		if errors.As(err, &refusal) {
			// It was not asked for anything that could be missing.
			return "", fmt.Errorf("%s: %s: %w: it answers with status %d, %q", op, c.address, errNoPodman, refusal.Status, refusal.Text)
		}
		return "", err
	}
	defer a.Close()
	if _, err := a.read(maxRefusal); err != nil {
		return "", err
	}
	told := a.header.Get(versionHeader)
	version, err := chooseVersion(told)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", op, c.address, err)
	}
	c.log.Debug("podman answers", "address", c.address, "version", told, "spoken", version)
	c.api.Store(&version)
	return version, nil
}

// chooseVersion returns the version to speak with an engine that tells its own.
func chooseVersion(told string) (string, error) {
	if told == "" {
		return "", fmt.Errorf("%w: it tells no version of libpod", errNoPodman)
	}
	version, ok := parseVersion(told)
	low, _ := parseVersion(oldest)
	high, _ := parseVersion(newest)
	switch {
	case !ok:
		return "", fmt.Errorf("%w: it tells the version %q", errNoPodman, readable(told))
	case version.before(low):
		return "", fmt.Errorf("podman %s is too old: install %s or later", told, oldest)
	case high.before(version):
		version = high
	}
	return fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2]), nil
}

// version is a version in three numbers.
type version [3]int

// parseVersion reads a version; what follows the three numbers, as in 5.0.0-dev, does not count.
func parseVersion(s string) (v version, ok bool) {
	s, _, _ = strings.Cut(s, "-")
	s, _, _ = strings.Cut(s, "+")
	parts := strings.Split(s, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

// before reports whether v is older than w.
func (v version) before(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}
