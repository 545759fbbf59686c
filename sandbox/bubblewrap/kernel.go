package bubblewrap

import (
	"os"
	"strconv"
	"strings"
)

// kernelSettings are the switches that forbid user namespaces; -1 where the kernel
// does not have one.
type kernelSettings struct {
	unprivilegedClone  int
	maxUserNamespaces  int
	appArmorRestricted int
	inContainer        bool
	root               bool
}

// readKernelSettings reads them below root, "/" but in tests.
func readKernelSettings(root string) kernelSettings {
	number := func(path string) int {
		data, err := os.ReadFile(root + path)
		if err != nil {
			return -1
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			return -1
		}
		return n
	}
	exists := func(path string) bool {
		_, err := os.Lstat(root + path)
		return err == nil
	}
	return kernelSettings{
		unprivilegedClone:  number("/proc/sys/kernel/unprivileged_userns_clone"),
		maxUserNamespaces:  number("/proc/sys/user/max_user_namespaces"),
		appArmorRestricted: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		inContainer:        exists("/.dockerenv") || exists("/run/.containerenv"),
		root:               os.Geteuid() == 0,
	}
}

// explain says which setting forbids user namespaces, and what to do.
func (k kernelSettings) explain() (rule, remedy string) {
	switch {
	case k.maxUserNamespaces == 0:
		return "user.max_user_namespaces is 0", "as root: sysctl -w user.max_user_namespaces=15000"
	case k.unprivilegedClone == 0:
		return "kernel.unprivileged_userns_clone is 0", "as root: sysctl -w kernel.unprivileged_userns_clone=1"
	case k.appArmorRestricted == 1:
		return "AppArmor forbids user namespaces to programs without a profile (kernel.apparmor_restrict_unprivileged_userns is 1)",
			"install an AppArmor profile for bwrap that permits userns, or as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case k.inContainer:
		return "this process is in a container whose rules forbid namespaces",
			"let the container make user namespaces (a seccomp profile that permits unshare and clone with CLONE_NEWUSER), or use another backend"
	}
	return "the kernel, or a security module, forbids user namespaces to this user", "ask the administrator of this machine, or use another backend"
}
