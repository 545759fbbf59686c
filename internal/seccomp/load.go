package seccomp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The words for profiles that are not files.
const (
	ProfileDefault    = "default"
	ProfileUnconfined = "unconfined"
)

// Filter is a compiled policy: an immutable value, safe for concurrent use.
type Filter struct {
	// Name is the word or path it was loaded by.
	Name string
	// Ignored are names of system calls in the policy that are not known here;
	// they stay under the policy's default action.
	Ignored []string

	program []bpf.RawInstruction
}

// Load compiles the profile of that name: "default" (also for an empty name),
// "unconfined", or the path of a file in the format of Docker profiles.
//
// A file that cannot be read is the file system's error; one that cannot be
// understood is a [*ParseError]; both name the file.
func Load(profile string, f Facts) (*Filter, error) {
	switch profile {
	case "", ProfileDefault:
		return compile(ProfileDefault, Default(), f)
	case ProfileUnconfined:
		return &Filter{Name: ProfileUnconfined}, nil
	}
	if !filepath.IsAbs(profile) {
		return nil, fmt.Errorf("seccomp profile %q: write \"default\", \"unconfined\" or the absolute path of a file", profile)
	}
	data, err := read(profile)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	p, err := Parse(data)
	if err == nil {
		var filter *Filter
		if filter, err = compile(profile, p, f); err == nil {
			return filter, nil
		}
	}
	return nil, fmt.Errorf("seccomp profile %s: %w", profile, err)
}

// Compile compiles a policy.
func Compile(p Policy, f Facts) (*Filter, error) { return compile("", p, f) }

func compile(name string, p Policy, f Facts) (*Filter, error) {
	t, err := resolve(p, f)
	if err != nil {
		return nil, err
	}
	program, err := assemble(t)
	if err != nil {
		return nil, err
	}
	return &Filter{Name: name, Ignored: t.unknown, program: program}, nil
}

// read reads a regular file of bounded size.
func read(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return io.ReadAll(io.LimitReader(file, MaxProfile+1))
}

// Unconfined reports that there is no filter at all.
func (f *Filter) Unconfined() bool { return len(f.program) == 0 }

// Bytes is the program as an array of struct sock_filter, nil when unconfined.
func (f *Filter) Bytes() []byte {
	if f.Unconfined() {
		return nil
	}
	return encode(f.program)
}

// Digest is the SHA-256 of the program in lower-case hexadecimal.
func (f *Filter) Digest() string {
	sum := sha256.Sum256(f.Bytes())
	return hex.EncodeToString(sum[:])
}

// HostFacts describes this machine and a process without capabilities.
func HostFacts() (Facts, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Facts{}, fmt.Errorf("ask for the kernel's version: %w", err)
	}
	v, err := ParseVersion(unix.ByteSliceToString(uts.Release[:]))
	if err != nil {
		return Facts{}, err
	}
	return Facts{Arch: runtime.GOARCH, Kernel: v}, nil
}
