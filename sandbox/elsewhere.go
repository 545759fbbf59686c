package sandbox

import "fmt"

// RefuseHost refuses what only a backend that works on a machine reached over SSH can keep:
// its host, the SSH configuration, and a directory to fill a workspace there from. The other
// backends call it before anything is created.
func RefuseHost(backend string, c Config) error {
	no := func(field, what string) error {
		return &Problem{
			Field: field, What: what, Rule: "only a workspace of the ssh backend lies on a host that is logged in to, not one of " + backend,
			Remedy: "leave it out, or use --backend ssh", Err: ErrRefused,
		}
	}
	switch {
	case c.SSH != "":
		return no("ssh", fmt.Sprintf("host %q", c.SSH))
	case c.SSHConfig != "":
		return no("sshConfig", fmt.Sprintf("file %q", c.SSHConfig))
	case c.Seed != "" && c.Seed != "none":
		return no("seed", fmt.Sprintf("directory %q", c.Seed))
	}
	return nil
}
