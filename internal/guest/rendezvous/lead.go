package rendezvous

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLead bounds the line that a lead is, in bytes.
const maxLead = 256

// Lead is what a helper is told first where its connection is its standard input and output, because
// its arguments were fixed when its container was made.
type Lead struct {
	// Tag names the helper's life.
	Tag string `json:"tag"`
	// Umask is that of the files and commands that the helper makes.
	Umask int `json:"umask"`
}

// Write sends the lead, which is one line.
func (l Lead) Write(w io.Writer) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// ReadLead reads a lead, and nothing behind it.
func ReadLead(r io.Reader) (Lead, error) {
	line := make([]byte, 0, maxLead)
	for {
		var b [1]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return Lead{}, fmt.Errorf("rendezvous: no lead: %w", err)
		}
		if b[0] == '\n' {
			break
		}
		if line = append(line, b[0]); len(line) == maxLead {
			return Lead{}, errors.New("rendezvous: the lead is too long")
		}
	}
	var l Lead
	if err := json.Unmarshal(line, &l); err != nil {
		return Lead{}, fmt.Errorf("rendezvous: the lead: %w", err)
	}
	if len(l.Tag) != 16 || strings.Trim(l.Tag, "0123456789abcdef") != "" || l.Umask&^0o777 != 0 {
		return Lead{}, errors.New("rendezvous: the lead is malformed")
	}
	return l, nil
}
