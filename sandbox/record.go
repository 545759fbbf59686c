package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// recordVersion is the newest form of a record that this program reads.
const recordVersion = 1

const (
	recordName   = "record.json"
	tempPrefix   = ".record-"
	maxRecord    = 4 << 20 // bytes
	corruptInfix = ".corrupt-"
)

// Record is what the registry keeps about one sandbox.
type Record struct {
	// Version is set by the registry.
	Version int `json:"version"`
	// Info describes the sandbox. Values of environment variables are not kept.
	Info Info `json:"info"`
	// Runtimes are processes of this machine that are the sandbox. They may be
	// killed when the owner is dead.
	Runtimes []ProcessRef `json:"runtimes,omitempty"`
	// InstanceTag names the present life of the sandbox, so that what it leaves
	// after a crash can be told apart: temporary files, marked processes.
	InstanceTag string `json:"instanceTag,omitempty"`
	// PendingSweep are tags of lives that ended without sweeping up.
	PendingSweep []string `json:"pendingSweep,omitempty"`
	// Scratch is the private directory in place of a workspace, where there is one.
	Scratch string `json:"scratch,omitempty"`
	// SetupDone is true once the setup command has succeeded.
	SetupDone bool `json:"setupDone,omitempty"`
}

// Describe is the sandbox as it is now: a record that says running while its owner
// is dead describes a dead sandbox.
func (r Record) Describe() Info {
	info := r.Info
	if info.State == StateRunning && !info.Owner.Alive() {
		info.State = StateDead
		info.Detail = fmt.Sprintf("its owner, %s, has ended without stopping it", info.Owner)
	}
	return info
}

// clone copies what a record refers to.
func (r Record) clone() Record {
	r.Runtimes = slices.Clone(r.Runtimes)
	r.PendingSweep = slices.Clone(r.PendingSweep)
	return r
}

// corruptError reports a record that cannot be read.
type corruptError struct{ err error }

func (e *corruptError) Error() string { return "unreadable record: " + e.err.Error() }
func (e *corruptError) Unwrap() error { return e.err }

// readRecord reads the record in dir. A missing one is fs.ErrNotExist, a broken one
// a *corruptError.
func readRecord(dir string, id ID) (Record, error) {
	f, err := os.OpenFile(filepath.Join(dir, recordName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = &corruptError{errors.New("it is a link")}
		}
		return Record{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return Record{}, &corruptError{err}
	}
	if len(data) > maxRecord {
		return Record{}, &corruptError{fmt.Errorf("larger than %d bytes", maxRecord)}
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, &corruptError{err}
	}
	switch {
	case r.Version > recordVersion:
		return Record{}, &Problem{
			What: fmt.Sprintf("record of sandbox %s", id), Rule: fmt.Sprintf("it has form %d, written by a newer version of this program", r.Version),
			Remedy: "use that version", Err: ErrRefused,
		}
	case r.Version < 1 || r.Info.ID != id:
		return Record{}, &corruptError{fmt.Errorf("it names sandbox %q", r.Info.ID)}
	}
	return r, nil
}

// writeRecord replaces the record in dir atomically and durably: after a crash at
// any moment there is the old one or the new one.
func writeRecord(dir string, r Record) (err error) {
	r.Version = recordVersion
	r.Info.Config = r.Info.Config.Redacted()
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("write record: %w", err)
		}
	}()
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, recordName))
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// dropTemporaries removes what a writer that was killed left in dir. Only the
// holder of the entry's lock may call it.
func dropTemporaries(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
