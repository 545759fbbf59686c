package bubblewrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/workberth/workberth/sandbox"
)

// account says who the processes of a sandbox are.
type account struct {
	// uid and gid on this machine: who owns what they write.
	uid, gid int
	// insideUID and insideGID are what they see themselves as.
	insideUID, insideGID int
	// other is true when that is not the user of this process.
	other bool
}

// accountFor decides who runs the sandbox. self is the user of this process.
func accountFor(spec sandbox.Spec, selfUID, selfGID int) (account, error) {
	a := account{uid: selfUID, gid: selfGID}
	// Scratch space belongs to nobody else, so its user stays the one who asked.
	if selfUID == 0 && spec.Config.Access != sandbox.AccessNone {
		info, err := os.Stat(spec.Workspace)
		if err != nil {
			return account{}, fmt.Errorf("workspace: %w", err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			a.uid, a.gid, a.other = int(st.Uid), int(st.Gid), true
		}
	}
	a.insideUID, a.insideGID = a.uid, a.gid
	if u, g, ok := strings.Cut(spec.Config.User, ":"); ok {
		// Validation has looked at the form.
		a.insideUID, _ = strconv.Atoi(u)
		a.insideGID, _ = strconv.Atoi(g)
	}
	return a, nil
}

// credential makes bwrap run as the account, without further groups; nil when it
// is this process's own.
func (a account) credential() *syscall.Credential {
	if !a.other {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// name is what the account is called inside.
func (a account) name() string {
	switch a.insideUID {
	case 0:
		return "root"
	case nobody:
		return "nobody"
	}
	return "agent"
}

// nobody is the id that ids without a meaning in the namespace are shown as.
const nobody = 65534

// passwd is the file of accounts inside.
func (a account) passwd(home, shell string) string {
	var b strings.Builder
	entry := func(name string, uid, gid int, gecos, home, shell string) {
		fmt.Fprintf(&b, "%s:x:%d:%d:%s:%s:%s\n", name, uid, gid, gecos, home, shell)
	}
	if a.insideUID != 0 {
		entry("root", 0, 0, "root", "/", "/usr/sbin/nologin")
	}
	entry(a.name(), a.insideUID, a.insideGID, a.name(), home, shell)
	if a.insideUID != nobody {
		entry("nobody", nobody, nobody, "nobody", "/", "/usr/sbin/nologin")
	}
	return b.String()
}

// group is the file of groups inside.
func (a account) group() string {
	var b strings.Builder
	names := []struct {
		name string
		gid  int
	}{{"root", 0}, {"agent", a.insideGID}, {"nogroup", nobody}}
	for _, g := range names {
		if g.name == "agent" && (g.gid == 0 || g.gid == nobody) {
			continue
		}
		fmt.Fprintf(&b, "%s:x:%d:\n", g.name, g.gid)
	}
	return b.String()
}
