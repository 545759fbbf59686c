package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// writeJSON writes one value as one line of JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes aligned columns; header and rows are escaped for a terminal.
func table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, r := range append([][]string{header}, rows...) {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = printable(c)
		}
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return tw.Flush()
}

// fileJSON is a file in JSON. Path and link target are reversible: where they
// are not UTF-8 or do not print, the exact bytes stand beside them in base64.
type fileJSON struct {
	Path       string    `json:"path"`
	PathBase64 string    `json:"pathBase64,omitempty"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	Mode       string    `json:"mode"`
	ModTime    time.Time `json:"modTime"`
	UID        uint32    `json:"uid"`
	GID        uint32    `json:"gid"`
	Links      uint64    `json:"links"`
	Target     string    `json:"target,omitempty"`
	TargetB64  string    `json:"targetBase64,omitempty"`
	SHA256     string    `json:"sha256,omitempty"`
	Error      string    `json:"error,omitempty"`
}

// newFileJSON describes a file under the path it was asked for.
func newFileJSON(path string, i fsbridge.FileInfo, target string) fileJSON {
	f := fileJSON{
		Type: string(i.Type), Size: i.Size, Mode: fmt.Sprintf("%04o", uint32(i.Mode)),
		ModTime: i.ModTime.UTC(), UID: i.UID, GID: i.GID, Links: i.Nlink,
	}
	f.Path, f.PathBase64 = reversible(path)
	if target != "" {
		f.Target, f.TargetB64 = reversible(target)
	}
	return f
}

// reversible is the printable form of a byte string and, where that differs from
// the bytes, the bytes in base64.
func reversible(s string) (display, b64 string) {
	display = fsbridge.DisplayPath(s)
	if display != s {
		b64 = base64.StdEncoding.EncodeToString([]byte(s))
	}
	return display, b64
}

// textJSON is output in JSON: as text where it is UTF-8, in base64 otherwise.
type textJSON struct {
	Text    string `json:"text"`
	Base64  string `json:"base64,omitempty"`
	Bytes   int64  `json:"bytes"`
	Dropped int64  `json:"dropped,omitempty"`
}

// newTextJSON wraps the kept bytes of an output of total bytes.
func newTextJSON(kept []byte, total, dropped int64) textJSON {
	t := textJSON{Bytes: total, Dropped: dropped}
	if utf8.Valid(kept) {
		t.Text = string(kept)
	} else {
		t.Base64 = base64.StdEncoding.EncodeToString(kept)
	}
	return t
}

// longMode is a file's type and permission as ls -l shows them.
func longMode(i fsbridge.FileInfo) string {
	kinds := map[fsbridge.FileType]string{
		fsbridge.TypeRegular: "-", fsbridge.TypeDir: "d", fsbridge.TypeSymlink: "l", fsbridge.TypeFIFO: "p",
		fsbridge.TypeSocket: "s", fsbridge.TypeChar: "c", fsbridge.TypeBlock: "b",
	}
	k, ok := kinds[i.Type]
	if !ok {
		k = "?"
	}
	perm := []byte(i.FSMode().Perm().String()[1:])
	special := func(bit fsbridge.Mode, at int, with, without byte) {
		if i.Mode&bit == 0 {
			return
		}
		if perm[at] == 'x' {
			perm[at] = with
		} else {
			perm[at] = without
		}
	}
	special(fsbridge.ModeSetUID, 2, 's', 'S')
	special(fsbridge.ModeSetGID, 5, 's', 'S')
	special(fsbridge.ModeSticky, 8, 't', 'T')
	return k + string(perm)
}
