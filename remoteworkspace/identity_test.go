package remoteworkspace

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func text(s string) *string { return &s }

const template = "# IDENTITY.md - Who Am I?\n\n_Fill this in._\n\n- **Name:**\n  _(pick something you like)_\n- **Creature:**\n  _(AI? robot?)_\n" +
	"- **Vibe:** warm and\n  calm\n- **Emoji:** 🦞\n- **Avatar:**\n  _(workspace-relative path, http(s) URL, or data URI)_\n\n---\n\nThis isn't just metadata.\n"

// RWS-02: the forms in which people write an identity.
func TestParseIdentity(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      Identity
	}{
		{"template", template, Identity{Vibe: "warm and calm", Emoji: "🦞"}},
		{"plain", "Name: Joanna\nCreature: AI assistant\n", Identity{Name: "Joanna", Creature: "AI assistant"}},
		{"marks", "* __name__: A\n+ *Emoji:* B\n  - **THEME :** C\n", Identity{Name: "A", Emoji: "B", Theme: "C"}},
		{"emphasis around the line", "- **Name: Ann**\n", Identity{Name: "Ann"}},
		{"emphasis around the value", "- Name: **Ann**\n", Identity{Name: "Ann"}},
		{"windows", "\ufeff- **Name:** Ann\r\n- **Emoji:** x\r\n", Identity{Name: "Ann", Emoji: "x"}},
		{"first wins", "- Name: A\n- Name: B\n", Identity{Name: "A"}},
		{"colons in the value", "- Avatar: https://x.test/a.png\n", Identity{Avatar: "https://x.test/a.png"}},
		{"no field", "- Nickname: A\nName A\n# Name: B\n> Name: C\n", Identity{}},
		{"front matter", "---\nname: x\n---\n- Name: y\n", Identity{Name: "y"}},
		{"code and comments", "```\nName: x\n```\n<!--\nName: z\n-->\n~~~~\n~~~\nName: w\n~~~~\nName: y\n", Identity{Name: "y"}},
		{"unfinished code", "```\nName: x\n", Identity{}},
		{"parentheses are a value", "- Avatar: (none yet)\n", Identity{Avatar: "(none yet)"}},
		{"empty", "", Identity{}},
	} {
		if got := ParseIdentity([]byte(c.doc)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// RWS-02: only the lines of the given fields change.
func TestApplyIdentity(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		patch     IdentityPatch
		want      string
	}{
		{"placeholder", template, IdentityPatch{Name: text("Clawd")}, strings.Replace(template, "**Name:**\n  _(pick something you like)_", "**Name:** Clawd", 1)},
		{"wrapped value", template, IdentityPatch{Vibe: text("sharp")}, strings.Replace(template, "warm and\n  calm", "sharp", 1)},
		{"clear", template, IdentityPatch{Emoji: text("")}, strings.Replace(template, "- **Emoji:** 🦞", "- **Emoji:**", 1)},
		{"same", template, IdentityPatch{Emoji: text(" 🦞 ")}, template},
		{"nothing", template, IdentityPatch{}, template},
		{"new field takes the form of the last", "a\n* _Name_: A\n  - nested\nb\n", IdentityPatch{Emoji: text("E")}, "a\n* _Name_: A\n  - nested\n* _Emoji_: E\nb\n"},
		{"new field in a whole-line emphasis", "**Name: A**\n", IdentityPatch{Emoji: text("E")}, "**Name: A**\n**Emoji: E**\n"},
		{"no line break at the end", "- Name: A", IdentityPatch{Name: text("B"), Theme: text("T")}, "- Name: B\n- Theme: T\n"},
		{"windows", "# I\r\n- **Name:** A\r\n", IdentityPatch{Avatar: text("a.png")}, "# I\r\n- **Name:** A\r\n- **Avatar:** a.png\r\n"},
		{"no document", "", IdentityPatch{Name: text("A"), Emoji: text("E")}, "# Identity\n\n- **Name:** A\n- **Emoji:** E\n"},
		{"no field yet", "# Me\nprose", IdentityPatch{Name: text("A")}, "# Me\nprose\n\n- **Name:** A\n"},
		{"unfinished code", "# Me\n```\ncode", IdentityPatch{Name: text("A")}, "# Me\n\n- **Name:** A\n\n```\ncode"},
		{"clear what is missing", "# Me\n", IdentityPatch{Name: text("")}, "# Me\n"},
		{"front matter only", "---\nname: x\n---\n", IdentityPatch{Name: text("A")}, "---\nname: x\n---\n\n- **Name:** A\n"},
	} {
		got, err := c.patch.Apply([]byte(c.doc))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%q, want\n%q", c.name, err, got, c.want)
		}
	}
}

func TestApplyIdentityRefuses(t *testing.T) {
	for _, v := range []string{"a\nb", "a\rb", "a\x00b", "a\u2028b", "\xff", "_(x)_", "**bold**", strings.Repeat("x", maxIdentityValue+1)} {
		if got, err := (IdentityPatch{Name: &v}).Apply([]byte(template)); err == nil {
			t.Errorf("%.20q: made %q, want an error", v, got)
		}
	}
	long := "data:image/png;base64," + strings.Repeat("A", 20<<10)
	if _, err := (IdentityPatch{Avatar: &long}).Apply([]byte(template)); err != nil {
		t.Errorf("a data URI of %d bytes: %v", len(long), err)
	}
}

// RWS-02: for any document and any patch, what was set reads back, what was not set
// stays, and every other line is kept, byte for byte and in order.
func TestApplyIdentityKeepsTheRest(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"- **Name:** Ann", "Name: x", "* _emoji_: 🦞", "- **Avatar:**", "  _(a placeholder)_", "  more text", "\tmore", "    - nested",
		"prose", "", "```", "~~~", "<!--", "-->", "<!-- x -->", "---", "# Title", "> Vibe: q", "- Theme:", "__Vibe: a__", "**Name", "- Name", ":", "\xff\xfe", "  Name: inner",
		"- **Theme:** \t spaced  ", "```go", "| Name: | x |",
	})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		if rapid.Bool().Draw(t, "bom") {
			b.WriteString("\ufeff")
		}
		lines := rapid.SliceOfN(piece, 0, 12).Draw(t, "lines")
		for i, l := range lines {
			b.WriteString(l)
			if i < len(lines)-1 || rapid.Bool().Draw(t, "last break") {
				b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "break"))
			}
		}
		doc := b.String()
		before := ParseIdentity([]byte(doc))
		want := before
		var patch IdentityPatch
		value := rapid.StringMatching(`[ ]?[a-zA-Z0-9:/()#🦞<>!-]{0,12}( [*_a-z]{1,3})?`).Filter(func(v string) bool { return readValue(v) == strings.TrimSpace(v) })
		set := func(at **string, in *string, name string) {
			if rapid.Bool().Draw(t, "set "+name) {
				v := value.Draw(t, name)
				*at, *in = &v, strings.TrimSpace(v)
			}
		}
		set(&patch.Name, &want.Name, "name")
		set(&patch.Emoji, &want.Emoji, "emoji")
		set(&patch.Theme, &want.Theme, "theme")
		out, err := patch.Apply([]byte(doc))
		if errors.Is(err, ErrInvalid) {
			t.Fatalf("%+v of %q: %v", patch, doc, err)
		}
		if got := ParseIdentity(out); got != want {
			t.Fatalf("%q became %q: reads as %+v, want %+v", doc, out, got, want)
		}
		// Every line that is no field of the patch, nor its value, is still there in order.
		rest := linesOf(string(out))
		d := splitIdentity([]byte(doc))
		touched := map[int]bool{}
		for _, label := range []string{"Name", "Emoji", "Theme"} {
			if at := d.find(label); at >= 0 {
				for i := at; i < d.more(at); i++ {
					touched[i] = true
				}
			}
		}
		for i, l := range d.lines {
			if touched[i] {
				continue
			}
			at := slices.Index(rest, strings.TrimRight(l.raw, "\r\n"))
			if at < 0 {
				t.Fatalf("%q became %q: the line %q is lost or moved", doc, out, l.raw)
			}
			rest = rest[at+1:]
		}
	})
}

func linesOf(s string) []string {
	lines := strings.Split(strings.TrimPrefix(s, "\ufeff"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r")
	}
	return lines
}
