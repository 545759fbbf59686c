package ssh

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/internal/sshtest"
)

func TestZZSftp(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c, err := sftp.NewClient(s.Dial(t), sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(64))
	if err != nil {
		t.Fatal(err)
	}
	conns := s.Connections()
	out, _ := exec.Command("pgrep", "-n", "sftp-server").Output()
	pids := []string{fmt.Sprint(os.Getpid()), fmt.Sprint(conns[0]), strings.TrimSpace(string(out))}
	for range 3 {
		var before [3][2]int
		for i, p := range pids {
			before[i][0], before[i][1] = cpu(p)
		}
		begun := time.Now()
		f, err := c.Create(t.TempDir() + "/x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadFromWithConcurrency(io.Reader(&zeros{512 << 20}), 64); err != nil {
			t.Fatal(err)
		}
		f.Close()
		took := time.Since(begun)
		for i, p := range pids {
			u, s := cpu(p)
			t.Logf("%s user %d0ms sys %d0ms", []string{"client", "sshd", "sftp-server"}[i], u-before[i][0], s-before[i][1])
		}
		t.Logf("%.0f MB/s", 512*1.048/took.Seconds())
	}
}
