package server

import (
	"fmt"
	"time"
)

// end closes the connection, ends every call and command, and waits for them.
func (s *session) end() error {
	s.mu.Lock()
	s.closed = true
	open := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		open = append(open, st)
	}
	s.mu.Unlock()

	s.role.stop()
	s.cancel()
	s.out.Close(errPeerGone)
	_ = s.conn.Close() // also frees a writer that waits for the peer
	for _, st := range open {
		st.abandon()
	}

	// Commands end within their grace, each call's own business; everything
	// else has the time to drain. Who waits for a command is told to give up.
	done := s.work.close()
	wait := s.cfg.Limits.Drain + longestGrace(open)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	defer s.stopWait()
	select {
	case <-done:
	case <-timer.C:
		s.mu.Lock()
		left := len(s.streams)
		s.mu.Unlock()
		return fmt.Errorf("%d calls did not end within %v", left, wait)
	}
	<-s.out.Done()
	return nil
}

func longestGrace(open []*stream) time.Duration {
	var longest time.Duration
	for _, st := range open {
		longest = max(longest, time.Duration(st.grace.Load()))
	}
	return longest
}
