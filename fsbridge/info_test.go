package fsbridge

import (
	"io/fs"
	"testing"
)

func TestFSMode(t *testing.T) {
	for typ, want := range map[FileType]fs.FileMode{
		TypeRegular: 0, TypeDir: fs.ModeDir, TypeSymlink: fs.ModeSymlink, TypeFIFO: fs.ModeNamedPipe, TypeSocket: fs.ModeSocket,
		TypeChar: fs.ModeDevice | fs.ModeCharDevice, TypeBlock: fs.ModeDevice, TypeUnknown: fs.ModeIrregular, "": fs.ModeIrregular,
	} {
		i := FileInfo{Type: typ, Mode: 0o640}
		if got := i.FSMode(); got != want|0o640 {
			t.Errorf("%q: %v, want %v", typ, got, want|0o640)
		}
		if i.IsDir() != (typ == TypeDir) || i.IsRegular() != (typ == TypeRegular) || i.FSMode().IsDir() != i.IsDir() || i.FSMode().IsRegular() != i.IsRegular() {
			t.Errorf("%q: directory %t, regular %t", typ, i.IsDir(), i.IsRegular())
		}
	}
	for mode, want := range map[Mode]fs.FileMode{
		0o4755: fs.ModeSetuid | 0o755, 0o2755: fs.ModeSetgid | 0o755, 0o1777: fs.ModeSticky | 0o777, 0o7000: fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky,
		0: 0, 0o777: 0o777, ModeAll: fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | 0o777,
	} {
		if got := (FileInfo{Type: TypeRegular, Mode: mode}).FSMode(); got != want {
			t.Errorf("%o: %v, want %v", mode, got, want)
		}
	}
}
