package bench

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// relay is a long line: what comes in at one end comes out at the other after a delay, in order, as
// much as there is. It counts what goes through.
type relay struct {
	to    string
	delay time.Duration
	l     net.Listener
	work  sync.WaitGroup

	accepted, sent, received atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once it is closed
}

// parcelSize and inFlight bound what is on the way in one direction: 16 MiB.
const (
	parcelSize = 32 << 10
	inFlight   = 512
)

// newRelay starts one that leads to an address.
func newRelay(ctx context.Context, to string, delay time.Duration) (*relay, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{to: to, delay: delay, l: l, conns: make(map[net.Conn]bool)}
	r.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			r.work.Go(func() { r.serve(near) })
		}
	})
	return r, nil
}

// traffic is what has gone through a line since it began: connections, and bytes as the one who
// connects sees them.
type traffic struct{ connections, sent, received int64 }

func (r *relay) traffic() traffic {
	return traffic{r.accepted.Load(), r.sent.Load(), r.received.Load()}
}

// since is what has gone through after an earlier look.
func (t traffic) since(before traffic) traffic {
	return traffic{t.connections - before.connections, t.sent - before.sent, t.received - before.received}
}

// close ends it and everything that goes through it.
func (r *relay) close() error {
	err := r.l.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close() // may have ended
	}
	r.conns = nil
	r.mu.Unlock()
	r.work.Wait()
	return err
}

// hold keeps a connection for close, or closes it when that is over.
func (r *relay) hold(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		_ = c.Close()
		return false
	}
	r.conns[c] = true
	return true
}

func (r *relay) drop(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// serve carries one connection.
func (r *relay) serve(near net.Conn) {
	if !r.hold(near) {
		return
	}
	defer r.drop(near)
	far, err := net.Dial("tcp", r.to)
	if err != nil || !r.hold(far) {
		return
	}
	defer r.drop(far)
	var both sync.WaitGroup
	both.Go(func() { r.carry(far, near, &r.sent) })
	both.Go(func() { r.carry(near, far, &r.received) })
	both.Wait()
}

// parcel is what was read at once, and when it is due.
type parcel struct {
	data []byte
	due  time.Time
}

// carry carries one direction and counts what sets out. Its end ends the other one as well.
func (r *relay) carry(to, from net.Conn, count *atomic.Int64) {
	line := make(chan parcel, inFlight)
	go func() {
		defer close(line)
		for {
			p := parcel{data: make([]byte, parcelSize)}
			n, err := from.Read(p.data)
			if n > 0 {
				count.Add(int64(n))
				p.data, p.due = p.data[:n], time.Now().Add(r.delay)
				line <- p
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range line {
		time.Sleep(time.Until(p.due)) //sleep: this is the line's length
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
	for range line { // lets the reader end
	}
}
