package remoteworkspace

import "time"

// Verification records that one integration was proved to work without synchronised
// copies.
type Verification struct {
	// Proof names what proved it: a test, a run, a report.
	Proof string
	// At is when.
	At time.Time
	// Version is the version of the program that was proved.
	Version string
}

// complete reports whether the record says what was proved, when, and of what.
func (v Verification) complete() bool { return v.Proof != "" && v.Version != "" && !v.At.IsZero() }

// SyncRequirements are what must be verified, each on its own, before the
// synchronisation of workspaces may be removed. The zero value keeps it: a binding,
// registered or not, is none of the five. Keeps RWS-23.
type SyncRequirements struct {
	MemorySearch      Verification
	MemoryMaintenance Verification
	Skills            Verification
	Attachments       Verification
	// HostProvisioning is the setting up of the remote machine.
	HostProvisioning Verification
}

// Unmet names the requirements without a complete verification of their own; a proof
// that stands for two of them counts for the first only.
func (r SyncRequirements) Unmet() []string {
	proofs := make(map[string]bool)
	var unmet []string
	for _, q := range []struct {
		name string
		v    Verification
	}{
		{"memory search", r.MemorySearch},
		{"memory maintenance", r.MemoryMaintenance},
		{"skills", r.Skills},
		{"attachments", r.Attachments},
		{"host provisioning", r.HostProvisioning},
	} {
		if !q.v.complete() || proofs[q.v.Proof] {
			unmet = append(unmet, q.name)
			continue
		}
		proofs[q.v.Proof] = true
	}
	return unmet
}

// MayRemoveSync reports whether all five are verified.
func (r SyncRequirements) MayRemoveSync() bool { return len(r.Unmet()) == 0 }
