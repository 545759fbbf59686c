package hostmount

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/workberth/workberth/sandbox"
)

// Account says who the processes of a sandbox are.
type Account struct {
	// UID and GID on this machine: who owns what they write.
	UID, GID int
	// InsideUID and InsideGID are what they see themselves as.
	InsideUID, InsideGID int
	// Other is true when that is not the user of this process.
	Other bool
}

// AccountFor decides who runs the sandbox of a resolved spec: the owner of the workspace where
// this process may be anybody, else its own user. selfUID and selfGID are that user.
func AccountFor(spec sandbox.Spec, selfUID, selfGID int) (Account, error) {
	a := Account{UID: selfUID, GID: selfGID}
	// Scratch space belongs to nobody else, so its user stays the one who asked.
	if selfUID == 0 && spec.Config.Access != sandbox.AccessNone {
		info, err := os.Stat(spec.Workspace)
		if err != nil {
			return Account{}, fmt.Errorf("workspace: %w", err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			a.UID, a.GID, a.Other = int(st.Uid), int(st.Gid), true
		}
	}
	a.InsideUID, a.InsideGID = a.UID, a.GID
	if u, g, ok := strings.Cut(spec.Config.User, ":"); ok {
		// Validation has looked at the form.
		a.InsideUID, _ = strconv.Atoi(u)
		a.InsideGID, _ = strconv.Atoi(g)
	}
	return a, nil
}

// Name is what the account is called inside.
func (a Account) Name() string {
	switch a.InsideUID {
	case 0:
		return "root"
	case Nobody:
		return "nobody"
	}
	return "agent"
}

// Nobody is the id that ids without a meaning in a namespace are shown as.
const Nobody = 65534
