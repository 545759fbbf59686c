package bridgetest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// numbered gives prefix with a five-digit number, so that byte order is numeric order.
func numbered(prefix string, i int) string { return fmt.Sprintf("%s%05d", prefix, i) }

// stringReader reads s and is nothing but an io.Reader: no Seek, no WriteTo, no Len.
func stringReader(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }

// wantNamesSoon is wantNames for a directory that another process may still be tidying.
func (k *kit) wantNamesSoon(p string, want ...string) {
	k.Helper()
	k.eventually(func() bool {
		got := k.names(p)
		for _, w := range want {
			if !got[w] {
				return false
			}
		}
		return len(got) == len(want)
	})
	k.wantNames(p, want...)
}

// eventually polls until cond holds, for a fact about which the environment gives no event. It
// gives up after a while; the caller then says what is wrong.
func (k *kit) eventually(cond func() bool) {
	k.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			return
		case <-k.ctx.Done():
			return
		}
	}
}

// readAll reads a file with an oracle.
func readAll(o Oracle, p string) ([]byte, error) {
	r, err := o.Open(p)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// together runs fn n times at once, all let go at the same moment, and waits.
func (k *kit) together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}
