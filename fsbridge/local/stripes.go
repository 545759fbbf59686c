package local

import "sync"

// stripes serialise the changes of one name among the calls of one bridge, so that what a
// precondition has found still holds when the change is made. Names that share a stripe wait for
// each other, nothing else. The zero value is ready.
type stripes [64]sync.Mutex

// lock holds the stripe of a name until unlock is called.
func (s *stripes) lock(name string) (unlock func()) {
	m := &s[stripe(name)]
	m.Lock()
	return m.Unlock
}

// lockTwo holds the stripes of two names, always in the same order.
func (s *stripes) lockTwo(a, b string) (unlock func()) {
	i, j := stripe(a), stripe(b)
	if i == j {
		return s.lock(a)
	}
	if i > j {
		i, j = j, i
	}
	s[i].Lock()
	s[j].Lock()
	return func() {
		s[j].Unlock()
		s[i].Unlock()
	}
}

// stripe is FNV-1a, folded.
func stripe(name string) int {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int(h % 64)
}
