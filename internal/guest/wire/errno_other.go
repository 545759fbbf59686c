//go:build !linux

package wire

import "syscall"

// On the wire an errno has the number that Linux gives it on most processors. Those
// a file system or a command yields are translated, others dropped: their text and
// the sentinels they match arrive all the same.

// linuxErrno is the number of an errno on the wire.
type linuxErrno struct {
	number uint64
	here   syscall.Errno
}

func linuxErrnos() []linuxErrno {
	return []linuxErrno{
		{1, syscall.EPERM}, {2, syscall.ENOENT}, {3, syscall.ESRCH}, {4, syscall.EINTR}, {5, syscall.EIO},
		{7, syscall.E2BIG}, {8, syscall.ENOEXEC}, {9, syscall.EBADF}, {11, syscall.EAGAIN}, {12, syscall.ENOMEM},
		{13, syscall.EACCES}, {16, syscall.EBUSY}, {17, syscall.EEXIST}, {18, syscall.EXDEV},
		{20, syscall.ENOTDIR}, {21, syscall.EISDIR}, {22, syscall.EINVAL}, {23, syscall.ENFILE}, {24, syscall.EMFILE},
		{26, syscall.ETXTBSY}, {27, syscall.EFBIG}, {28, syscall.ENOSPC}, {30, syscall.EROFS}, {31, syscall.EMLINK},
		{32, syscall.EPIPE}, {36, syscall.ENAMETOOLONG}, {38, syscall.ENOSYS}, {39, syscall.ENOTEMPTY},
		{40, syscall.ELOOP}, {95, syscall.EOPNOTSUPP}, {110, syscall.ETIMEDOUT}, {116, syscall.ESTALE}, {122, syscall.EDQUOT},
	}
}

func errnoOut(e syscall.Errno) uint64 {
	for _, t := range linuxErrnos() {
		if t.here == e {
			return t.number
		}
	}
	return 0
}

// errnoIn returns zero for a number that names nothing here.
func errnoIn(n uint64) syscall.Errno {
	for _, t := range linuxErrnos() {
		if t.number == n {
			return t.here
		}
	}
	return 0
}
