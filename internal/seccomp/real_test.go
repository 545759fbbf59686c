package seccomp

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test program has two further roles, so that real processes run under the
// filter: "confine PROFILE PROGRAM ARG..." installs it and executes the program,
// "attempt CALL..." makes system calls and prints what came of each.
const roleVar = "SECCOMP_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "confine":
		fmt.Fprintln(os.Stderr, confine(os.Args[1], os.Args[2:]))
		os.Exit(99)
	case "attempt":
		attempt(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// confine installs a profile and replaces this process. It returns only errors.
func confine(profile string, argv []string) error {
	f, err := HostFacts()
	if err != nil {
		return err
	}
	filter, err := Load(profile, f)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := filter.Bytes()
	prog := unix.SockFprog{Len: uint16(len(code) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("install the filter: %w", errno)
	}
	role := ""
	if argv[0] == "self" {
		argv[0], role = "/proc/self/exe", "attempt"
	}
	if err := os.Setenv(roleVar, role); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// attempt makes raw calls that are harmless where they succeed.
func attempt(calls []string) {
	raw := func(nr uintptr, args ...uintptr) error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
	const bad = ^uintptr(0) // an address or number that the kernel itself refuses
	for _, c := range calls {
		var err error
		switch c {
		case "unshare":
			err = raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
		case "setns":
			err = raw(unix.SYS_SETNS, bad, 0)
		case "mount":
			err = raw(unix.SYS_MOUNT, bad, bad, bad, 0, 0)
		case "clone-newuser":
			err = raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_THREAD) // a combination without sense
		case "clone3":
			err = raw(unix.SYS_CLONE3, bad, 0)
		case "keyctl":
			err = raw(unix.SYS_KEYCTL, bad)
		case "bpf":
			err = raw(unix.SYS_BPF, bad)
		case "io_uring_setup":
			err = raw(unix.SYS_IO_URING_SETUP, 0, bad)
		case "vsock":
			_, err = unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		case "vsock-high-bits":
			err = raw(unix.SYS_SOCKET, 1<<32|unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		case "unix-socket":
			_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		case "openat2":
			_, err = unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH})
		case "no-such-call":
			err = raw(100000)
		case "x32":
			err = raw(0x40000000 | 39)
		default:
			err = errors.New("unknown attempt")
		}
		name := "ok"
		if err != nil {
			name = err.Error()
			var errno unix.Errno
			if errors.As(err, &errno) {
				name = unix.ErrnoName(errno)
			}
		}
		fmt.Printf("%s %s\n", c, name)
	}
}

// run executes argv under a profile.
func run(t *testing.T, profile string, argv ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{profile}, argv...)...)
	cmd.Env = append(os.Environ(), roleVar+"=confine")
	cmd.Dir = t.TempDir()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func TestRealCalls(t *testing.T) {
	attempts := []string{
		"unshare", "setns", "mount", "clone-newuser", "clone3", "keyctl", "bpf", "io_uring_setup",
		"vsock", "vsock-high-bits", "unix-socket", "openat2", "no-such-call",
	}
	want := `unshare EPERM
setns EPERM
mount EPERM
clone-newuser EPERM
clone3 ENOSYS
keyctl EPERM
bpf EPERM
io_uring_setup EPERM
vsock EPERM
vsock-high-bits EPERM
unix-socket ok
openat2 ok
no-such-call EPERM
`
	if runtime.GOARCH == "amd64" {
		attempts, want = append(attempts, "x32"), want+"x32 ENOSYS\n"
	}
	out, err := run(t, "default", append([]string{"self"}, attempts...)...)
	if err != nil || out != want {
		t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, out, want)
	}
}

// Ordinary programs notice nothing.
func TestRealPrograms(t *testing.T) {
	for name, script := range map[string]string{
		"sh":     `a=$(echo one | tr o 0); (exit 3) || [ $? = 3 ] && echo "$a" | grep -q 0ne; find / -maxdepth 1 >list; sort list | wc -l; test -s list`,
		"git":    `git init -q . && git config user.email a@b && git config user.name n && echo x >f && git add f && git commit -qm m && git log --oneline | grep -q m && git gc -q && git fsck`,
		"python": `python3 -c 'import subprocess, threading, tempfile, socket, multiprocessing; t = threading.Thread(target=lambda: None); t.start(); t.join(); assert subprocess.check_output(["echo", "x"]) == b"x\n"; socket.socketpair(); tempfile.TemporaryFile()'`,
		"go":     `printf 'package main\nimport "os/exec"\nfunc main() { if o, err := exec.Command("echo", "go").Output(); err != nil || string(o) != "go\\n" { panic(err) } }\n' >m.go && GO111MODULE=off GOFLAGS= go run m.go`,
		"gcc":    `printf 'int main(void) { return 0; }\n' >m.c && gcc -o m m.c && ./m`,
		"strace": `strace -o log true && grep -q exit log`,
		"tar":    `mkdir d && echo x >d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && test -s d/f`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "go" && testing.Short() {
				t.Skip("compiling the standard library takes long")
			}
			tool := name
			if name == "python" {
				tool = "python3"
			}
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("%s is not installed", tool)
			}
			if out, err := run(t, "default", "/bin/sh", "-ec", script); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A file in the format of Docker profiles reaches the kernel.
func TestRealCustomProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(path, []byte(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 30},
		{"names": ["kill"], "action": "SCMP_ACT_KILL_PROCESS",
		 "args": [{"index": 1, "value": 12, "op": "SCMP_CMP_EQ"}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, path, "/bin/sh", "-c", `LC_ALL=C mkdir d; kill -0 $$ && echo alive; kill -12 $$; echo not reached`)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGSYS {
		t.Errorf("the process was not killed by the filter: %v", err)
	}
	if !strings.Contains(out, "Read-only file system") || !strings.Contains(out, "alive") || strings.Contains(out, "not reached") {
		t.Errorf("output: %s", out)
	}
}

// A program of the other word size is killed at its first call, not confused.
func TestRealForeignConvention(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("needs gcc on amd64")
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "m.c"), filepath.Join(dir, "m")
	// int 0x80 is the 32-bit convention, also from 64-bit code; 20 is getpid.
	program := "int main(void) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20)); return r < 0; }\n"
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-o", bin, src).CombinedOutput(); err != nil {
		t.Skipf("cannot compile: %v %s", err, out)
	}
	if err := exec.Command(bin).Run(); err != nil {
		t.Skipf("this kernel has no 32-bit calls: %v", err)
	}
	_, err = run(t, "default", bin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGSYS {
		t.Errorf("got %v, want death by SIGSYS", err)
	}
}
