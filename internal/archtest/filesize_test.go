package archtest

import (
	"bytes"
	"testing"
)

// maxLines is where a file stops being one idea.
const maxLines = 500

// longFiles lists the files that may be longer, each with the reason.
func longFiles() map[string]string {
	return map[string]string{}
}

// TestFilesAreShort keeps one idea in one file. Tests may be long: a table is not harder to read
// for having many rows.
func TestFilesAreShort(t *testing.T) {
	allowed := longFiles()
	for _, f := range openRepo(t).goFiles(t) {
		if f.isTest() {
			continue
		}
		lines := bytes.Count(f.source, []byte("\n"))
		reason, exempt := allowed[f.name]
		delete(allowed, f.name)
		switch {
		case lines > maxLines && !exempt:
			t.Errorf("%s has %d lines, more than %d: divide it, or give a reason in internal/archtest/filesize_test.go", f.name, lines, maxLines)
		case lines <= maxLines && exempt:
			t.Errorf("%s has %d lines and needs no exemption (%s)", f.name, lines, reason)
		}
	}
	for name := range allowed {
		t.Errorf("%s has an exemption and does not exist", name)
	}
}
