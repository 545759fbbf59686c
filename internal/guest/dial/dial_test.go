package dial

import (
	"io"
	"net"
	"strings"
	"testing"
)

// echo listens, reads to the end, and answers with what it got.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		data, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("got "), data...))
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Both directions end by themselves, and the first byte says that the connection stands.
func TestRun(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		port := echo(t, "tcp", address)
		var out strings.Builder
		if err := Run(strings.NewReader("it"), &out, port); err != nil {
			t.Fatal(err)
		}
		if out.String() != "\x00got it" {
			t.Errorf("%s: %q", address, out.String())
		}
	}
}

// Without a connection nothing is written.
func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, closed, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	for _, port := range []string{closed, "0", "65536", "-1", "", "ssh", "80@example.org", "80/x"} {
		var out strings.Builder
		if err := Run(strings.NewReader(""), &out, port); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %q", port, err, out.String())
		}
	}
}
