package bubblewrap

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// inNamespace starts a process in a user namespace of its own, under its own number.
func inNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE}, // to set limits of the namespace
	}
}

// forbidRole forbids further user namespaces in this one, gives up the capability
// that this took (bwrap does not like to be started with one), and becomes the test
// program again.
func forbidRole(args []string) int {
	runtime.LockOSThread() // the new program has the rights of the thread that executes it
	err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err == nil {
		err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	if err == nil {
		err = os.Setenv(roleVar, "")
	}
	if err == nil {
		err = syscall.Exec("/proc/self/exe", append([]string{"/proc/self/exe"}, args...), os.Environ())
	}
	fmt.Println("namespaces cannot be forbidden:", err)
	return 1
}
