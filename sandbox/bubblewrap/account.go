package bubblewrap

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/workberth/workberth/internal/hostmount"
)

// account says who the processes of a sandbox are.
type account = hostmount.Account

// credentialOf makes bwrap run as the account, without further groups; nil when it
// is this process's own.
func credentialOf(a account) *syscall.Credential {
	if !a.Other {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
}

// passwdFor is the file of accounts inside.
func passwdFor(a account, home, shell string) string {
	var b strings.Builder
	entry := func(name string, uid, gid int, gecos, home, shell string) {
		fmt.Fprintf(&b, "%s:x:%d:%d:%s:%s:%s\n", name, uid, gid, gecos, home, shell)
	}
	if a.InsideUID != 0 {
		entry("root", 0, 0, "root", "/", "/usr/sbin/nologin")
	}
	entry(a.Name(), a.InsideUID, a.InsideGID, a.Name(), home, shell)
	if a.InsideUID != hostmount.Nobody {
		entry("nobody", hostmount.Nobody, hostmount.Nobody, "nobody", "/", "/usr/sbin/nologin")
	}
	return b.String()
}

// groupFor is the file of groups inside.
func groupFor(a account) string {
	var b strings.Builder
	names := []struct {
		name string
		gid  int
	}{{"root", 0}, {"agent", a.InsideGID}, {"nogroup", hostmount.Nobody}}
	for _, g := range names {
		if g.name == "agent" && (g.gid == 0 || g.gid == hostmount.Nobody) {
			continue
		}
		fmt.Fprintf(&b, "%s:x:%d:\n", g.name, g.gid)
	}
	return b.String()
}
