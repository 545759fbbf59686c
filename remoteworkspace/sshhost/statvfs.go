package sshhost

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// StatVFS tells the space of a file system by the sandbox's own stat: the bridge has no such
// operation. The path is an argument and never read by a shell.
func (f *files) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	if _, err := f.b.Stat(f.ctx, r.Filepath); err != nil {
		return nil, status(err)
	}
	fail := func(err error) (*sftp.StatVFS, error) {
		return nil, status(&fsbridge.PathError{Op: "space", Path: r.Filepath, Err: fmt.Errorf("%w: %w", err, fsbridge.ErrUnsupported)})
	}
	argv := []string{"stat", "-f", "-c", "%s %S %b %f %a %c %d %l", "--", r.Filepath}
	res, err := sandbox.Run(f.ctx, f.sb, sandbox.Command{Argv: argv}, nil, sandbox.RunOptions{Timeout: touchTimeout, OutputLimit: 4 << 10})
	if err != nil || res.Status.Code != 0 {
		return fail(errors.New("the sandbox's stat program does not tell"))
	}
	v := &sftp.StatVFS{}
	if _, err := fmt.Fscan(strings.NewReader(string(res.Stdout.Bytes())), &v.Bsize, &v.Frsize, &v.Blocks, &v.Bfree, &v.Bavail, &v.Files, &v.Ffree, &v.Namemax); err != nil {
		return fail(errors.New("the sandbox's stat program tells something else"))
	}
	v.Favail = v.Ffree
	return v, nil
}
