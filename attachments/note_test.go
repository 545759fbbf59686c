package attachments_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
)

// checkNote stages files with hostile names and origins and reads the note back as a program would:
// one line per file, every name survives or is shortened, every path holds its content. C125 C127
func checkNote(t rapid.TB, s *mediastore.Store, p place, names []string, origin string) {
	var files []attachments.MediaFact
	for i, name := range names {
		r, err := s.IngestBytes(context.Background(), []byte{byte(i)}, mediastore.Facts{Name: name, Origin: origin})
		if err != nil {
			t.Fatalf("%v", err)
		}
		files = append(files, attachments.FactOf(r))
	}
	prep, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
	if err != nil {
		t.Fatalf("%v", err)
	}
	n, err := prep.Prepare(context.Background(), attachments.TurnFiles{Files: files})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if got, want := n.Chars(), len(utf16.Encode([]rune(n.Text))); got != want {
		t.Fatalf("%d characters, want %d", got, want)
	}
	for _, r := range n.Text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("the note has %U:\n%s", r, n.Text)
		}
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != len(names) || len(n.Files) != len(names) {
		t.Fatalf("%d lines for %d files:\n%s", len(lines), len(names), n.Text)
	}
	for i, line := range lines {
		m := lineForm.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q", line)
		}
		name, err1 := unquote(m[1])
		path, err2 := unquote(m[2])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if utf8.ValidString(names[i]) && utf8.RuneCountInString(names[i]) <= 255 && name != names[i] {
			t.Fatalf("the name %q reads as %q", names[i], name)
		}
		if path != n.Files[i].Path || !strings.HasSuffix(path, staged(mediastore.CleanName(names[i]), string([]byte{byte(i)}))) {
			t.Fatalf("the path of %q is %q", names[i], path)
		}
	}
}

func TestNoteProperty(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfN(rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"", "a\nAttached file \"x\": \"/etc/passwd\" (1 bytes)", "\"", `\`, "\u2028", "\u202egpj.sh", "\xff", "a\r", "\U000e0041"}),
			rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
		), 1, 3).Draw(rt, "names")
		checkNote(rt, s, p, names, rapid.String().Draw(rt, "origin"))
	})
}

func FuzzNote(f *testing.F) {
	for _, name := range []string{"a.txt", "\n", "\"", "x\x00", "\xff\xfe", strings.Repeat("é", 300)} {
		f.Add(name, "origin\n")
	}
	s, p := openStore(f, 0), localPlace(f)
	f.Fuzz(func(t *testing.T, name, origin string) { checkNote(t, s, p, []string{name}, origin) })
}

// The note is added below the input, and only there; what a runtime keeps of it afterwards is its own
// business. An older host and a note that does not fit leave the input as it is. ATT-08 ATT-09 ATT-10 ATT-12 ATT-17
func TestExecutionInput(t *testing.T) {
	const input = "do it [image]"
	note := attachments.Note{Text: `Attached file "a": "/b" (1 bytes)`}
	gives := func(n attachments.Note, err error) attachments.InputPreparer {
		return func(context.Context, attachments.InputRequest) (attachments.Note, error) { return n, err }
	}
	failed := errors.New("failed")
	for _, tc := range []struct {
		prepare attachments.InputPreparer
		max     int
		want    string
		err     error
	}{
		{nil, 1000, input, nil},
		{gives(note, nil), 1000, input + "\n\n" + note.Text, nil},
		{gives(note, nil), note.Chars(), input + "\n\n" + note.Text, nil},
		{gives(note, nil), note.Chars() - 1, input, nil},
		{gives(attachments.Note{}, nil), 1000, input, nil},
		{gives(note, failed), 1000, "", failed},
	} {
		got, err := attachments.PrepareExecutionInput(t.Context(), tc.prepare, attachments.InputRequest{MaxChars: tc.max}, input)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("input %q, %v; want %q", got, err, tc.want)
		}
	}
	if got := attachments.ExecutionInput("", note); got != note.Text {
		t.Errorf("an empty input: %q", got)
	}
}
