package sftpfs

import (
	"hash/maphash"
	"slices"
)

// stripes are locks for names: few for all of them, so that two names may share one.
type stripes struct {
	seed  maphash.Seed
	locks []chan struct{}
}

func newStripes() stripes {
	s := stripes{seed: maphash.MakeSeed(), locks: make([]chan struct{}, 64)}
	for i := range s.locks {
		s.locks[i] = make(chan struct{}, 1)
	}
	return s
}

// hold locks paths until release is called, or fails when the context of the call ends before.
func (c *call) hold(paths ...string) (release func(), err error) {
	s := &c.b.names
	var want []int
	for _, p := range paths {
		want = append(want, int(maphash.String(s.seed, p)%uint64(len(s.locks))))
	}
	slices.Sort(want) // everybody takes them in one order
	want = slices.Compact(want)
	have := 0
	release = func() {
		for _, i := range want[:have] {
			<-s.locks[i]
		}
	}
	for _, i := range want {
		select {
		case s.locks[i] <- struct{}{}:
			have++
		case <-c.ctx.Done():
			release()
			return nil, c.ctx.Err()
		}
	}
	return release, nil
}
