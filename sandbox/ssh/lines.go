package ssh

import (
	"sync"

	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/sandbox"
)

// line is a destination as the configuration of a sandbox names it.
type line struct{ host, config string }

func lineOf(c sandbox.Config) line { return line{c.SSH, c.SSHConfig} }

// lines are the connections in use, one group for each destination.
type lines struct {
	open func(line) (*sshclient.Group, error)

	mu     sync.Mutex
	groups map[line]*share
}

// share is a group and how many use it.
type share struct {
	group *sshclient.Group
	users int
}

// acquire returns the group of a destination. release gives it back; the last one closes
// it.
func (l *lines) acquire(key line) (group *sshclient.Group, release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.groups[key]
	if s == nil {
		g, err := l.open(key)
		if err != nil {
			return nil, nil, err
		}
		s = &share{group: g}
		l.groups[key] = s
	}
	s.users++
	return s.group, sync.OnceFunc(func() { l.release(key, s) }), nil
}

func (l *lines) release(key line, s *share) {
	l.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(l.groups, key)
	}
	l.mu.Unlock()
	if last {
		_ = s.group.Close() // it never fails
	}
}
