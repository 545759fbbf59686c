package rendezvous_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/guest/rendezvous"
)

// A lead arrives as it was sent, and what comes behind it is left alone.
func TestLead(t *testing.T) {
	var b bytes.Buffer
	sent := rendezvous.Lead{Tag: "0123456789abcdef", Umask: 0o027}
	if err := sent.Write(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("rest")
	got, err := rendezvous.ReadLead(&b)
	if err != nil || got != sent {
		t.Errorf("%+v, %v", got, err)
	}
	if rest, _ := io.ReadAll(&b); string(rest) != "rest" {
		t.Errorf("left is %q", rest)
	}
}

// What is no lead is refused.
func TestLeadMalformed(t *testing.T) {
	for _, text := range []string{
		"", "{}", "{}\n", "no\n", `{"tag":"../../etc/passwd0","umask":0}` + "\n", `{"tag":"0123456789abcdef","umask":4096}` + "\n",
		`{"tag":"0123456789abcdef","umask":-1}` + "\n", strings.Repeat("x", 4096) + "\n",
	} {
		if l, err := rendezvous.ReadLead(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q gives %+v", text, l)
		}
	}
}
