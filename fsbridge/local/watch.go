//go:build linux

package local

type watch struct{}

func (s *state) endWatches() {}
