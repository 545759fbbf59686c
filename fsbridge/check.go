package fsbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// DigestOf is the digest of a SHA-256 sum.
func DigestOf(sum []byte) Digest { return Digest(hex.EncodeToString(sum)) }

// Check refuses malformed options, with an error that matches [ErrInvalid]. Implementations call it
// before any effect.
func (o WriteOptions) Check() error {
	switch {
	case o.Mode&^ModeAll != 0:
		return fmt.Errorf("mode %#o has more than twelve bits: %w", o.Mode, ErrInvalid)
	case o.Mode&^ModePerm != 0 && !o.AllowSetID:
		return fmt.Errorf("mode %#o sets set-id or sticky bits, which was not allowed: %w", o.Mode, ErrInvalid)
	case o.Size < 0:
		return fmt.Errorf("size %d is negative: %w", o.Size, ErrInvalid)
	}
	return o.If.Check()
}

// Check refuses a condition that contradicts itself or can never hold, with an error that matches
// [ErrInvalid]. Implementations call it before any effect.
func (p Precondition) Check() error {
	if p.Hash == "" {
		return nil
	}
	if p.Absent {
		return fmt.Errorf("a precondition cannot demand a hash and no file: %w", ErrInvalid)
	}
	sum, err := hex.DecodeString(string(p.Hash))
	if err != nil || len(sum) != sha256.Size || DigestOf(sum) != p.Hash {
		return fmt.Errorf("%q is no SHA-256 in lower-case hexadecimal: %w", p.Hash, ErrInvalid)
	}
	return nil
}
