package local

import (
	"errors"

	"github.com/workberth/workberth/sandbox"
)

// refuse says what cannot be kept, before anything is created.
func refuse(c sandbox.Config) error {
	walls := sandbox.Unconfined{
		Backend: Name, Machine: "this machine",
		Binds: "commands see this machine's files", User: "commands run as the user of this process",
		Instead: "use --backend bubblewrap",
	}
	return errors.Join(walls.Refuse(c), sandbox.RefuseHost(Name, c))
}
