package server

import "sync"

// keepIdle is how many goroutines wait for work. A burst starts more.
const keepIdle = 16

// pool runs calls, each on a goroutine of its own for as long as it takes, so
// that a slow one holds up no other. Goroutines are reused: a call then finds a
// grown stack.
type pool struct {
	jobs chan func()
	all  sync.WaitGroup

	mu   sync.Mutex
	idle int
}

func newPool() *pool { return &pool{jobs: make(chan func(), keepIdle)} }

// do runs job soon and returns at once. It must not be called after close.
func (p *pool) do(job func()) {
	p.all.Add(1)
	p.mu.Lock()
	if p.idle > 0 {
		p.idle-- // one of those who wait takes it
		p.mu.Unlock()
		p.jobs <- job
		return
	}
	p.mu.Unlock()
	go p.work(job)
}

func (p *pool) work(job func()) {
	for {
		job()
		p.mu.Lock()
		if p.idle >= keepIdle {
			p.mu.Unlock()
			p.all.Done()
			return
		}
		p.idle++
		p.mu.Unlock()
		p.all.Done()
		var ok bool
		if job, ok = <-p.jobs; !ok {
			return
		}
	}
}

// close ends the goroutines that wait and returns a channel that is closed when
// every job is done.
func (p *pool) close() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		p.all.Wait()
		close(p.jobs)
		close(done)
	}()
	return done
}
