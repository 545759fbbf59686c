package sandbox

import "fmt"

// IsZero reports whether r identifies no process.
func (r ProcessRef) IsZero() bool { return r == ProcessRef{} }

// String is for people: "process 4711", or "no process".
func (r ProcessRef) String() string {
	if r.IsZero() {
		return "no process"
	}
	return fmt.Sprintf("process %d", r.PID)
}
