//go:build linux

package sftpfs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/sshtest"
)

// bridge makes a bridge to a directory.
func bridge(t testing.TB, client *sftp.Client, root string, change ...func(*sftpfs.Options)) *sftpfs.Bridge {
	t.Helper()
	opts := sftpfs.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}}
	for _, f := range change {
		f(&opts)
	}
	b, err := sftpfs.New(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// link is both ends of a stream pair.
type link struct {
	io.Reader
	io.WriteCloser
}

// pipes connects a client's side and a server's side.
func pipes(t testing.TB) (client, server link) {
	t.Helper()
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _, _ = r1.Close(), w1.Close(), r2.Close(), w2.Close() })
	return link{r1, w2}, link{r2, w1}
}

// without is a client of OpenSSH's own server program whose greeting lacks some extensions, as that of
// other servers does.
func without(t testing.TB, extensions ...string) *sftp.Client {
	t.Helper()
	sshtest.Available(t)
	near, far := pipes(t)
	cmd := exec.Command(sshtest.Program(t, "sftp-server"), "-e", "-u", "022") //nolint:noctx // ends with its input
	cmd.Stdin = far.Reader
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		_, body, err := readPacket(out)
		if err != nil {
			return
		}
		kept := body[:4]
		for rest := body[4:]; len(rest) > 0; {
			var name, data string
			name, rest = cutString(rest)
			data, rest = cutString(rest)
			if !slices.Contains(extensions, name) {
				kept = appendString(appendString(kept, name), data)
			}
		}
		if writePacket(far, 2, kept) == nil {
			_, _ = io.Copy(far, out)
		}
	}()
	client, err := sftp.NewClientPipe(near.Reader, near.WriteCloser)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		<-done
		_ = cmd.Wait()
	})
	return client
}

// goServer is a client of the server of github.com/pkg/sftp.
func goServer(t testing.TB) *sftp.Client {
	t.Helper()
	near, far := net.Pipe()
	server, err := sftp.NewServer(far)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve()
	}()
	client, err := sftp.NewClientPipe(near, near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		<-done
	})
	return client
}

// Packet types of the protocol.
const (
	pktOpen    = 3
	pktClose   = 4
	pktRead    = 5
	pktWrite   = 6
	pktLstat   = 7
	pktFstat   = 8
	pktOpendir = 11
	pktReaddir = 12
	pktRemove  = 13
	pktStat    = 17
	pktReadlnk = 19
	pktExtend  = 200
	pktStatus  = 101
	pktHandle  = 102
	pktData    = 103
	pktName    = 104
	pktAttrs   = 105
)

// answer is one packet without its request's number.
type answer struct {
	typ  byte
	body []byte
}

// script makes the answers of a server that follows no rules: nil is silence. It is asked for one request
// after the other.
type script func(typ byte, body []byte) *answer

// scripted is a client of such a server. /ws is a directory and everything below it a regular file of five
// bytes, as far as the script does not say otherwise by returning defer.
func scripted(t testing.TB, s script) *sftp.Client {
	t.Helper()
	near, far := pipes(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		if _, _, err := readPacket(far); err != nil {
			return
		}
		hello := appendString(appendString([]byte{0, 0, 0, 3}, "posix-rename@openssh.com"), "1")
		if writePacket(far, 2, hello) != nil {
			return
		}
		for {
			typ, body, err := readPacket(far)
			if err != nil {
				return
			}
			a := s(typ, body[4:])
			if a == ordinary {
				a = obey(typ, body[4:])
			}
			if a != nil && writePacket(far, a.typ, append(bytes.Clone(body[:4]), a.body...)) != nil {
				return
			}
		}
	}()
	client, err := sftp.NewClientPipe(near.Reader, near.WriteCloser)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		<-done
	})
	return client
}

// ordinary asks for the answer of a server that means well.
var ordinary = &answer{}

func obey(typ byte, body []byte) *answer {
	switch typ {
	case pktOpen, pktOpendir:
		return &answer{pktHandle, appendString(nil, "h")}
	case pktLstat, pktStat:
		if p, _ := cutString(body); p == "/ws" {
			return attrs(0o040755, 4096)
		}
		return attrs(0o100644, 5)
	case pktFstat:
		return attrs(0o100644, 5)
	case pktRead:
		if off := binary.BigEndian.Uint64(body[len(body)-12:]); off > 0 {
			return status(1)
		}
		return &answer{pktData, appendString(nil, "hello")}
	case pktReaddir:
		return status(1)
	}
	return status(0)
}

func attrs(mode uint32, size uint64) *answer {
	return &answer{pktAttrs, rawAttrs(mode, size)}
}

func rawAttrs(mode uint32, size uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1|4)
	b = binary.BigEndian.AppendUint64(b, size)
	return binary.BigEndian.AppendUint32(b, mode)
}

func status(code uint32) *answer {
	return &answer{pktStatus, appendString(appendString(binary.BigEndian.AppendUint32(nil, code), "text of the server"), "")}
}

// names is a listing.
func names(list ...string) *answer {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(list)))
	for _, n := range list {
		b = append(appendString(appendString(b, n), "long name"), rawAttrs(0o100644, 5)...)
	}
	return &answer{pktName, b}
}

func readPacket(r io.Reader) (typ byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:4])-1)
	_, err = io.ReadFull(r, body)
	return head[4], body, err
}

func writePacket(w io.Writer, typ byte, body []byte) error {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+1)), typ)
	_, err := w.Write(append(b, body...))
	return err
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func cutString(b []byte) (string, []byte) {
	n := binary.BigEndian.Uint32(b)
	return string(b[4 : 4+n]), b[4+n:]
}

// soon bounds what must not hang.
const soon = 20 * time.Second

// within fails the test when f takes too long.
func within(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(soon):
		t.Fatal("the call hangs")
		return nil
	}
}
