package backendtest

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"
)

// rounds is how often something is repeated.
func (k *kit) rounds(usually, short int) int {
	if testing.Short() {
		return short
	}
	return usually
}

// knob is a number from the environment.
func (k *kit) knob(name string, otherwise int) int {
	k.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		k.Fatalf("%s=%q is not a positive number", name, s)
	}
	return n
}

// after calls f i milliseconds, about, from now: each round meets another moment.
func (k *kit) after(i int, f func()) (stop func()) {
	timer := time.AfterFunc(time.Duration(i)*time.Millisecond, f)
	return func() { timer.Stop() }
}

// decodeArgs reads the output of the role "args".
func decodeArgs(k *kit, out string) []string {
	k.Helper()
	var list [][]byte
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		k.Fatalf("output %q: %v", out, err)
	}
	args := []string{}
	for _, a := range list {
		args = append(args, string(a))
	}
	return args
}

// decode reads JSON.
func decode[T any](k *kit, out string) (v T) {
	k.Helper()
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		k.Fatalf("output %q: %v", out, err)
	}
	return v
}
