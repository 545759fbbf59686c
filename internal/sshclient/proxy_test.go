package sshclient

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/sshtest"
)

// Through other hosts: each with its own keys, and each checked.
func TestProxyJump(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	a, b, s := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	p := newPlace(t, host("a", a), host("b", b), host("box", s, "ProxyJump a,b"))
	if err := p.connect("box", Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.Log(), "Accepted") || !strings.Contains(a.Log(), "Accepted") {
		t.Error("it did not go through both")
	}
	p.file(".ssh/config", strings.Join([]string{host("a", a), host("b", b, "UserKnownHostsFile none"), host("box", s, "ProxyJump a,b")}, ""))
	err := p.connect("box", Options{})
	refused(t, err, ErrHostKeyUnknown)
	if want := p.read("b").String(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not name %s", err, want)
	}
	s.Stop()
	p.file(".ssh/config", host("a", a)+host("box", s, "ProxyJump a"))
	refused(t, p.connect("box", Options{}), ErrUnreachable)
}

func TestProxyCommand(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	jump, s := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	p := newPlace(t)
	ssh := sshtest.Program(t, "ssh")
	config := p.file("jump config", host("jump", jump, "IdentityAgent none"))
	p.file(".ssh/config", host("box", s, "ProxyCommand "+ssh+" -F '"+config+"' -W %h:%p jump"))
	if err := p.connect("box", Options{}); err != nil {
		t.Fatal(err)
	}
	// One that says nothing and ends, and one that says nothing and stays.
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, command := range []string{"echo no way >&2; exit 3", "sleep 100"} {
		p := newPlace(t, host("box", s, "ProxyCommand "+command, "ConnectTimeout 1"))
		wg.Go(func() {
			begun := time.Now()
			refused(t, p.connect("box", Options{}), ErrUnreachable)
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("%q: %v", command, took)
			}
		})
	}
}
