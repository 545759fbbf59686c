package helperbin

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// check reports why the file at path cannot serve as helper for t: missing, not a regular file,
// not executable for this user, on a file system mounted noexec, no program, or a program for
// another target. Links are followed.
func check(path string, t target) error {
	info, err := os.Stat(path)
	if err != nil {
		return bare(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("not a regular file (%v)", info.Mode().Type())
	}
	if info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("not executable (mode %04o): %w", info.Mode().Perm(), fs.ErrPermission)
	}
	// The kernel's answer counts the owner, access lists and a noexec mount.
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("not executable for this user, or on a file system mounted noexec: %w", err)
	}
	return checkTarget(path, t)
}

// bare removes the operation and path from a file system error: the caller names the path.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// wrongTargetError says that a file is a program for something else than was wanted.
type wrongTargetError struct {
	is   string
	want target
}

func (e *wrongTargetError) Error() string {
	return fmt.Sprintf("it is %s, needed is a program for %v", e.is, e.want)
}

// machine is what an ELF header says about a target's architecture.
type machine struct {
	class   elf.Class
	data    elf.Data
	machine elf.Machine
}

// machineOf returns the ELF facts of a Go architecture on Linux.
func machineOf(goarch string) (machine, bool) {
	m, ok := map[string]machine{
		"386":     {elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_386},
		"amd64":   {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64},
		"arm":     {elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_ARM},
		"arm64":   {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_AARCH64},
		"loong64": {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_LOONGARCH},
		"ppc64le": {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_PPC64},
		"riscv64": {elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_RISCV},
		"s390x":   {elf.ELFCLASS64, elf.ELFDATA2MSB, elf.EM_S390},
	}[goarch]
	return m, ok
}

// checkTarget compares the ELF header of the file with the target. Targets whose format is not
// known here pass: their programs are refused by the system that is to run them.
func checkTarget(path string, t target) error {
	want, known := machineOf(t.goarch)
	if t.goos != "linux" || !known {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &wrongTargetError{is: "no ELF program", want: t}
		}
		return bare(err)
	}
	defer func() { _ = f.Close() }()
	if is := (machine{f.Class, f.Data, f.Machine}); is != want {
		return &wrongTargetError{is: fmt.Sprintf("a program for %v (%v)", f.Machine, f.Class), want: t}
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return &wrongTargetError{is: fmt.Sprintf("an ELF file that is no program (%v)", f.Type), want: t}
	}
	return nil
}

// fileSum returns the lower-case hexadecimal SHA-256 of a file.
func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
