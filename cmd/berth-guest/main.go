//go:build linux

// Command berth-guest is the helper that serves files and commands inside a
// sandbox. It is started by berth, speaks the protocol of internal/guest on a
// connection it is given, and ends with that connection. It uses the standard
// library and golang.org/x/sys only.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"github.com/workberth/workberth/internal/guest/dial"
	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/internal/guest/seed"
	"github.com/workberth/workberth/internal/guest/wire"
	"github.com/workberth/workberth/internal/version"
)

const usage = `usage: berth-guest serve [FLAGS]            serve on standard input and output
       berth-guest connect SOCKET [FLAGS]   serve on a Unix socket; the token is the first line of standard input
       berth-guest call DIR [FLAGS]         serve on the Unix socket that a file in DIR names, with token and tag
       berth-guest end TAG                  end the helpers of a session and what they have started
       berth-guest unpack DIR               fill a new directory from a tar stream on standard input
       berth-guest attached [FLAGS]         serve on standard input and output; tag and umask are the first line of the input
       berth-guest dial PORT                connect standard input and output with a port of the loopback here
       berth-guest version [--json]

FLAGS are --mount=KIND:ro|rw:PATH (repeated), --tag=16HEX, --read-limit=BYTES and --home=PATH,
a directory that is made for this user when it is missing.
It is started by berth; there is nothing to do with it by hand.
`

// The first thread looks after orphans; nothing else may run on it. It has to be
// taken before main begins, and not in the private roles, which start often.
func init() { //nolint:gochecknoinits // only here is the main goroutine sure to be on the first thread
	if !reaper.IsRole(os.Args[1:]) {
		runtime.LockOSThread()
	}
}

func main() {
	if code, played := reaper.Main(os.Args[1:]); played {
		os.Exit(code)
	}
	err := run(os.Args[1:])
	var bad *flagError
	if errors.As(err, &bad) {
		fmt.Fprintf(os.Stderr, "berth-guest: %v\n%s", err, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth-guest:", err)
		os.Exit(1)
	}
}

// run plays one public role.
func run(args []string) error {
	role := ""
	if len(args) > 0 {
		role, args = args[0], args[1:]
	}
	switch role {
	case "serve":
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		return serve(o, standardStreams)
	case "connect":
		if len(args) == 0 {
			return &flagError{"connect needs the path of a socket"}
		}
		o, err := parseOptions(args[1:])
		if err != nil {
			return err
		}
		return serve(o, callBack(args[0]))
	case "call":
		if len(args) == 0 {
			return &flagError{"call needs a directory"}
		}
		o, err := parseOptions(args[1:])
		if err != nil {
			return err
		}
		inv, err := rendezvous.ReadInvitation(args[0])
		if err != nil {
			return err
		}
		o.tag = inv.Tag
		syscall.Umask(inv.Umask)
		return serve(o, accept(inv))
	case "end":
		if len(args) != 1 {
			return &flagError{"end needs the tag of a session"}
		}
		return endSession(os.Stdout, args[0])
	case "unpack":
		if len(args) != 1 {
			return &flagError{"unpack needs a directory"}
		}
		return seed.Unpack(os.Stdin, args[0])
	case "attached":
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		lead, err := rendezvous.ReadLead(os.Stdin)
		if err != nil {
			return err
		}
		o.tag = lead.Tag
		syscall.Umask(lead.Umask)
		return serve(o, standardStreams)
	case "dial":
		if len(args) != 1 {
			return &flagError{"dial needs a port"}
		}
		return dial.Run(os.Stdin, os.Stdout, args[0])
	case "version":
		return printVersion(os.Stdout, len(args) == 1 && args[0] == "--json")
	}
	return &flagError{fmt.Sprintf("unknown role %q", role)}
}

// printVersion tells build and protocol.
func printVersion(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{"version": version.Version(), "protocol": wire.Version})
	}
	_, err := fmt.Fprintf(w, "%s protocol %d\n", version.Version(), wire.Version)
	return err
}
