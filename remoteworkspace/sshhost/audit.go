package sshhost

import (
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"
)

// Event is one line of the audit log: who did what, when, and what came of it.
type Event struct {
	Time time.Time `json:"time"`
	// Event is "refused", "auth", "login", "logout", "session", "file", "forward",
	// "reload" or "shutdown".
	Event string `json:"event"`
	// Conn and Session number connections and sessions of this server.
	Conn    uint64 `json:"conn,omitempty"`
	Session uint64 `json:"session,omitempty"`
	// Remote is the address and port of the client.
	Remote    string `json:"remote,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	// Key is the fingerprint of the key that was offered or that signed; KeyID and
	// Authority are those of a certificate.
	Key       string `json:"key,omitempty"`
	KeyID     string `json:"keyId,omitempty"`
	Authority string `json:"authority,omitempty"`
	// Kind is what a session was ("shell", "exec", "sftp") or what was done to a file.
	Kind string `json:"kind,omitempty"`
	// What is the command, the path inside or the forwarded address, cut to 1 KiB.
	What    string `json:"what,omitempty"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
	// In and Out are bytes from and to the client.
	In         int64 `json:"in,omitempty"`
	Out        int64 `json:"out,omitempty"`
	DurationMS int64 `json:"durationMs,omitempty"`
}

// maxWhat bounds Event.What, in bytes.
const maxWhat = 1 << 10

// clip cuts a text of the client's making to n bytes of valid text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// auditor writes events as JSON lines, one call of Write each.
type auditor struct {
	mu  sync.Mutex
	w   io.Writer
	log *slog.Logger
	// torn: the last line may have been cut, and the next one begins with a line's end.
	torn bool
}

func (a *auditor) record(e Event) {
	e.What = clip(e.What, maxWhat)
	line, err := json.Marshal(e)
	if err != nil {
		a.log.Error("an audit event has no JSON form", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := append(line, '\n')
	if a.torn {
		out = append([]byte{'\n'}, out...)
	}
	n, err := a.w.Write(out)
	if n > 0 {
		a.torn = err != nil
	}
	if err != nil {
		a.log.Error("the audit log cannot be written", "error", err, "event", string(line))
	}
}

// refusals keep a flood of connections from filling the disk with records of it: one in a
// second for each limit, and the number of those left out.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time
	more map[string]int
}

// note reports whether a refusal is to be written down, and how many were not since the last.
func (r *refusals) note(limit string, now time.Time) (more int, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last, r.more = map[string]time.Time{}, map[string]int{}
	}
	if last, ok := r.last[limit]; ok && now.Sub(last) < time.Second {
		r.more[limit]++
		return 0, false
	}
	more = r.more[limit]
	r.last[limit], r.more[limit] = now, 0
	return more, true
}

// record completes an event and writes it down.
func (s *Server) record(e Event) {
	e.Time = s.clock.Now().UTC()
	s.audit.record(e)
}
