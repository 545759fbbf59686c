package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// sftpName is the peer's name in the report.
const sftpName = "`pkg/sftp`"

// sftpRequests is how many requests it has under way for one file.
const sftpRequests = 64

// sftpPeer does over SFTP what the bridge does, on a connection like ours.
type sftpPeer struct {
	*sftp.Client
	conn *ssh.Client
	dir  string // the workspace
}

// sftp connects to a host, for the files in dir.
func (s *SSHServer) sftp(host, dir string) (*sftpPeer, error) {
	conn, err := ssh.Dial("tcp", s.at(host), s.client)
	if err != nil {
		return nil, err
	}
	c, err := sftp.NewClient(conn, sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(sftpRequests))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &sftpPeer{c, conn, dir}, nil
}

func (p *sftpPeer) close() error { return errors.Join(p.Close(), p.conn.Close()) }

// at is a path in the workspace.
func (p *sftpPeer) at(name string) string { return path.Join(p.dir, name) }

func (p *sftpPeer) stat(size int) error {
	info, err := p.Stat(p.at("f"))
	if err == nil && info.Size() != int64(size) {
		err = fmt.Errorf("stat says %d bytes", info.Size())
	}
	return err
}

// read reads a small file whole.
func (p *sftpPeer) read(name string) ([]byte, error) {
	f, err := p.Open(p.at(name))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, struct{ io.Reader }{f}) // one read after the other is faster than WriteTo for so little
	return b.Bytes(), errors.Join(err, f.Close())
}

// replace writes a small file beside the one that it replaces.
func (p *sftpPeer) replace(name string, content []byte) error {
	tmp := p.at(name + ".tmp")
	if err := p.write(tmp, content); err != nil {
		return err
	}
	return p.PosixRename(tmp, p.at(name))
}

func (p *sftpPeer) write(absolute string, content []byte) error {
	f, err := p.OpenFile(absolute, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// list lists a directory of so many files.
func (p *sftpPeer) list(name string, want int) error {
	entries, err := p.ReadDir(p.at(name))
	if err == nil && len(entries) != want {
		err = fmt.Errorf("list gave %d entries", len(entries))
	}
	return err
}
