package ssh

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sshtest"
)

type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	z.n -= n
	return int(n), nil
}

func cpu(pid string) (u, s int) {
	d, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(d), ") ")
	f := strings.Fields(rest)
	fmt.Sscan(f[11], &u)
	fmt.Sscan(f[12], &s)
	return
}

func TestZZProf(t *testing.T) {
	r := newRig(t, sshtest.Options{})
	sb := r.ensure(t.TempDir())
	fb, _ := sb.Bridge(r.ctx, nil)
	conns := r.server.Connections()
	pids := []string{fmt.Sprint(os.Getpid()), fmt.Sprint(conns[0]), sb.Info().Runtime["pid"]}
	for range 3 {
		var before [3][2]int
		for i, p := range pids {
			before[i][0], before[i][1] = cpu(p)
		}
		begun := time.Now()
		if _, err := fsbridge.WriteStream(context.Background(), fb, "new", &zeros{512 << 20}, fsbridge.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		for i, p := range pids {
			u, s := cpu(p)
			t.Logf("%s user %d0ms sys %d0ms", []string{"client", "sshd", "helper"}[i], u-before[i][0], s-before[i][1])
		}
		t.Logf("%.0f MB/s", 512*1.048/took.Seconds())
	}
}
