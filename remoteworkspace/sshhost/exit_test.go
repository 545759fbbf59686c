package sshhost

import (
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// How a command ended comes before the end of its output: OpenSSH's client closes the channel when both
// directions have ended, and would be told nothing any more.
func TestExitBeforeEnd(t *testing.T) {
	t.Parallel()
	c := newRig(t).dial(t)
	for command, want := range map[string]string{"echo out; exit 3": "exit-status", "kill -KILL $$": "exit-signal", "exec 2>&1 >&-; cat; exit 4": "exit-status"} {
		ch, reqs, err := c.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ C string }{command})); !ok || err != nil {
			t.Fatal(ok, err)
		}
		_ = ch.CloseWrite() // the command may be over already
		told := make(chan string, 8)
		go func() {
			defer close(told)
			for r := range reqs {
				if r.WantReply {
					_ = r.Reply(false, nil)
				} else {
					told <- r.Type
				}
			}
		}()
		if _, err := io.Copy(io.Discard, ch); err != nil {
			t.Fatal(err)
		}
		// Here the client has seen the end. It answers at once, and what comes later is lost.
		_ = ch.Close()
		if got, ok := <-told; !ok || got != want {
			t.Errorf("%q: told %q, want %s", command, got, want)
		}
	}
}
