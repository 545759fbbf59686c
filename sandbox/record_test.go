package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FuzzReadRecord: whatever lies in a record's place, it is a record of that sandbox or an error
// of a known kind.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"info":{"id":"fake-aaaaaaaaaaaaaaaa"}}`))
	f.Add([]byte(`{"version":99,"info":{"id":"fake-aaaaaaaaaaaaaaaa"}}`))
	f.Add([]byte(`{"version":1,"info":{"id":"fake-aaaaaaaaaaaaaaaa","created":"yesterday"}}`))
	f.Add([]byte(`{"version":1,"runtimes":[{"pid":-1}]}`))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, recordName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := readRecord(dir, idA)
		var corrupt *corruptError
		var newer *Problem
		switch {
		case err == nil:
			if rec.Info.ID != idA || rec.Version != recordVersion {
				t.Errorf("accepted %+v", rec)
			}
			rec.Describe()
		case errors.As(err, &corrupt), errors.As(err, &newer):
		default:
			t.Errorf("error %v", err)
		}
	})
}

// What is no regular file is not waited for and not followed.
func TestReadOddRecord(t *testing.T) {
	for name, plant := range map[string]func(string) error{
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"huge":      func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<40)) },
	} {
		dir := t.TempDir()
		if err := plant(filepath.Join(dir, recordName)); err != nil {
			t.Fatal(err)
		}
		var corrupt *corruptError
		if _, err := readRecord(dir, idA); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
