package libpod

import (
	"strconv"
	"strings"
)

// peerLimits are hard limits of the engine's process; zero where there is none, or none is known.
type peerLimits struct {
	openFiles, processes uint64
}

// parseLimits reads what the kernel shows of a process's limits.
func parseLimits(text string) (l peerLimits) {
	for line := range strings.Lines(text) {
		// Max open files            1024                 524288               files
		for title, to := range map[string]*uint64{"Max open files ": &l.openFiles, "Max processes ": &l.processes} {
			rest, ok := strings.CutPrefix(line, title)
			if fields := strings.Fields(rest); ok && len(fields) >= 2 {
				*to, _ = strconv.ParseUint(fields[1], 10, 64) // zero for "unlimited"
			}
		}
	}
	return l
}
