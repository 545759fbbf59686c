package sandbox_test

import (
	"errors"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// What belongs to a host is told by its field; "none" is nothing to seed from.
func TestRefuseHost(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]sandbox.Config{
		"ssh": {SSH: "host"}, "sshConfig": {SSHConfig: "/file"}, "seed": {Seed: "/dir"},
	} {
		var p *sandbox.Problem
		if err := sandbox.RefuseHost("docker", c); !errors.As(err, &p) || p.Field != field || !errors.Is(err, sandbox.ErrRefused) || p.Remedy == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := sandbox.RefuseHost("docker", sandbox.Config{Seed: "none", Image: "x"}); err != nil {
		t.Error(err)
	}
}
