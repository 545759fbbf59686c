package seccomp

import "golang.org/x/sys/unix"

// cloneNamespaceFlags are the flags of clone(2) that make a namespace, as far as
// they lie above the exit signal: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC,
// NEWUSER, NEWPID and NEWNET.
const cloneNamespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Default returns the policy named "default"; see the package documentation. It
// is made for processes without capabilities and knows no exceptions for any.
func Default() Policy {
	eperm := Errno(unix.EPERM)
	p := Policy{Default: eperm}
	allow := func(names []string, conds ...Cond) {
		p.Rules = append(p.Rules, Rule{Names: names, Action: Allow, Conds: conds})
	}
	for _, names := range [][]string{
		filesAllowed(), descriptorsAllowed(), memoryAllowed(), processesAllowed(),
		signalsAllowed(), timeAllowed(), schedulingAllowed(), networkAllowed(), ipcAllowed(),
	} {
		allow(names)
	}

	// Tracing is harmless to the filter since 4.8: the filter runs after the
	// tracer has changed the call.
	p.Rules = append(p.Rules, Rule{
		Names:  []string{"ptrace", "process_vm_readv", "process_vm_writev"},
		Action: Allow,
		Only:   When{MinKernel: Version{4, 8}},
	})

	// Families of addresses by number, as a list of what is permitted: a call with
	// bits above the 32 that the kernel looks at matches none of them.
	for _, r := range socketFamilies() {
		allow([]string{"socket"},
			Cond{Arg: 0, Op: GreaterOrEqual, Value: r[0]}, Cond{Arg: 0, Op: LessOrEqual, Value: r[1]})
	}

	// Execution domains of ordinary programs, without and with UNAME26, and the
	// question which one is set. ADDR_NO_RANDOMIZE and its like stay forbidden.
	for _, domain := range []uint64{0x0, 0x8, 0x20000, 0x20008, 0xffffffff} {
		allow([]string{"personality"}, Cond{Arg: 0, Op: Equal, Value: domain})
	}

	allow([]string{"clone"}, Cond{Arg: 0, Op: MaskedEqual, Mask: cloneNamespaceFlags, Value: 0})
	p.Rules = append(p.Rules,
		Rule{Names: []string{"clone3"}, Action: Errno(unix.ENOSYS)},
		Rule{
			Names:  []string{"arch_prctl", "modify_ldt"},
			Action: Allow,
			Only:   When{Arches: []string{"amd64"}},
		},
	)
	return p
}

// socketFamilies are ranges of address families. Left out are the hypervisor's
// (AF_VSOCK), the kernel's cryptography (AF_ALG), and protocols that died with
// their hardware and whose code few people read.
func socketFamilies() [][2]uint64 {
	return [][2]uint64{
		{unix.AF_UNSPEC, unix.AF_INET},
		{unix.AF_BRIDGE, unix.AF_INET6},
		{unix.AF_SECURITY, unix.AF_ASH},
		{unix.AF_RDS, unix.AF_SNA},
		{unix.AF_PPPOX, unix.AF_PPPOX},
		{unix.AF_LLC, unix.AF_RXRPC},
		{unix.AF_PHONET, unix.AF_IEEE802154},
		{unix.AF_NFC, unix.AF_NFC},
		{unix.AF_KCM, 45}, // up to AF_MCTP
	}
}

func filesAllowed() []string {
	return []string{
		"open", "openat", "openat2", "creat", "close", "close_range", "name_to_handle_at",
		"stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs",
		"statmount", "listmount",
		"access", "faccessat", "faccessat2",
		"getdents", "getdents64", "getcwd", "chdir", "fchdir",
		"mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2",
		"link", "linkat", "symlink", "symlinkat", "readlink", "readlinkat", "mknod", "mknodat",
		"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "umask",
		"utime", "utimes", "utimensat", "futimesat",
		"getxattr", "lgetxattr", "fgetxattr", "getxattrat",
		"setxattr", "lsetxattr", "fsetxattr", "setxattrat",
		"listxattr", "llistxattr", "flistxattr", "listxattrat",
		"removexattr", "lremovexattr", "fremovexattr", "removexattrat",
		"truncate", "ftruncate", "fallocate", "fadvise64", "readahead", "cachestat",
		"sync", "syncfs", "fsync", "fdatasync", "sync_file_range",
		"inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "fanotify_mark",
		"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
	}
}

func descriptorsAllowed() []string {
	return []string{
		"read", "readv", "pread64", "preadv", "preadv2",
		"write", "writev", "pwrite64", "pwritev", "pwritev2", "lseek",
		"copy_file_range", "sendfile", "splice", "tee", "vmsplice",
		"dup", "dup2", "dup3", "fcntl", "flock", "ioctl", "pipe", "pipe2",
		"poll", "ppoll", "select", "pselect6",
		"epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old",
		"epoll_wait", "epoll_wait_old", "epoll_pwait", "epoll_pwait2",
		"eventfd", "eventfd2", "signalfd", "signalfd4", "memfd_create", "memfd_secret",
		"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
	}
}

func memoryAllowed() []string {
	return []string{
		"brk", "mmap", "munmap", "mremap", "mprotect", "msync", "madvise", "mincore", "mseal",
		"mlock", "mlock2", "mlockall", "munlock", "munlockall", "membarrier",
		"pkey_alloc", "pkey_free", "pkey_mprotect", "remap_file_pages", "map_shadow_stack",
		"process_mrelease",
	}
}

func processesAllowed() []string {
	return []string{
		"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
		"getpid", "getppid", "gettid", "getpgid", "setpgid", "getpgrp", "getsid", "setsid",
		"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
		"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups",
		"setfsuid", "setfsgid", "capget", "capset", "prctl", "seccomp",
		"getrlimit", "setrlimit", "prlimit64", "getrusage", "times", "sysinfo", "uname",
		"getrandom", "getcpu", "rseq", "set_tid_address", "get_thread_area", "set_thread_area",
		"get_robust_list", "set_robust_list", "restart_syscall", "pidfd_open", "pidfd_send_signal", "uretprobe",
	}
}

func signalsAllowed() []string {
	return []string{
		"kill", "tkill", "tgkill", "pause", "alarm", "sigaltstack",
		"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
		"rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
	}
}

// timeAllowed has calls that could set the clock; the kernel still asks for
// CAP_SYS_TIME.
func timeAllowed() []string {
	return []string{
		"time", "gettimeofday", "nanosleep", "clock_getres", "clock_gettime", "clock_nanosleep",
		"adjtimex", "clock_adjtime", "getitimer", "setitimer",
		"timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
		"timerfd_create", "timerfd_gettime", "timerfd_settime",
	}
}

func schedulingAllowed() []string {
	return []string{
		"sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getattr", "sched_setattr",
		"sched_getparam", "sched_setparam", "sched_getscheduler", "sched_setscheduler",
		"sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval",
		"getpriority", "setpriority", "ioprio_get", "ioprio_set",
	}
}

func networkAllowed() []string {
	return []string{
		"socketpair", "bind", "listen", "accept", "accept4", "connect", "shutdown",
		"getsockname", "getpeername", "getsockopt", "setsockopt",
		"sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg",
	}
}

func ipcAllowed() []string {
	return []string{
		"futex", "futex_waitv", "futex_wait", "futex_wake", "futex_requeue",
		"semget", "semctl", "semop", "semtimedop", "shmget", "shmctl", "shmat", "shmdt",
		"msgget", "msgctl", "msgsnd", "msgrcv",
		"mq_open", "mq_unlink", "mq_getsetattr", "mq_notify", "mq_timedreceive", "mq_timedsend",
	}
}
