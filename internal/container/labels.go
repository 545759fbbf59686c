package container

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Labels of our containers. They are the truth about whose a container is; its name is for people.
const (
	labelPrefix = "io.workberth."
	// labelState proves that a container belongs to one directory of records of one user on one
	// machine, and so whose claim on it counts.
	labelState = labelPrefix + "state"
	// labelSandbox is the sandbox's name, labelBackend that of its backend.
	labelSandbox = labelPrefix + "sandbox"
	labelBackend = labelPrefix + "backend"
	// labelConfig is the hash of the configuration that the container was made for.
	labelConfig = labelPrefix + "config"
	// labelForm changes when containers are made in another way, so that older ones are made anew.
	labelForm = labelPrefix + "form"
	// labelVolume is the volume that stands in for the workspace on another machine. A container is
	// made when its volume is complete, so that this label tells that too.
	labelVolume = labelPrefix + "volume"
	// labelHelper is the SHA-256 of the guest helper in a volume.
	labelHelper = labelPrefix + "helper"
	// Labels for people.
	labelScope     = labelPrefix + "scope"
	labelKey       = labelPrefix + "key"
	labelWorkspace = labelPrefix + "workspace"
)

// form is the present way of making containers.
const form = "1"

// stateID names a directory of records: two users, two machines and two directories of one user
// that share an engine never have the same.
func stateID(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	machine, _ := os.ReadFile("/etc/machine-id") // its absence makes the id less telling, not wrong
	h := sha256.New()
	for _, part := range []string{strings.TrimSpace(string(machine)), strconv.Itoa(os.Geteuid()), dir} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// labels of a container for a resolved spec.
func (b *Backend) labels(r sandbox.Resolved) map[string]string {
	key := r.Spec.Session
	if r.Spec.Scope == sandbox.ScopeAgent {
		key = r.Spec.Agent
	}
	l := map[string]string{
		labelState: b.state, labelSandbox: string(r.ID), labelBackend: b.opts.Name, labelConfig: r.ConfigHash, labelForm: form,
		labelScope: string(r.Spec.Scope), labelKey: key, labelWorkspace: r.Spec.Workspace,
	}
	for name, value := range l {
		l[name] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return l
}

// ownsVolume reports whether a volume is the one of a sandbox of ours.
func (b *Backend) ownsVolume(v Volume, id sandbox.ID) bool {
	return b.owns(Container{Labels: v.Labels}, id)
}

// ours are the labels by which this backend finds its containers.
func (b *Backend) ours() map[string]string {
	return map[string]string{labelState: b.state, labelBackend: b.opts.Name}
}

// owns reports whether a container is the one of a sandbox of ours.
func (b *Backend) owns(c Container, id sandbox.ID) bool {
	return c.Labels[labelState] == b.state && c.Labels[labelBackend] == b.opts.Name && c.Labels[labelSandbox] == string(id)
}

// sandboxOf is the sandbox that a container with our labels is the one of. A container that somebody
// has given the same labels has another name.
func (b *Backend) sandboxOf(c Container) (sandbox.ID, bool) {
	id := sandbox.ID(c.Labels[labelSandbox])
	return id, id.Valid() && id.Backend() == b.opts.Name && c.Name == b.containerName(id)
}

// containerName is the name of a sandbox's container, the same in every life.
func (b *Backend) containerName(id sandbox.ID) string {
	return "berth-" + strings.TrimPrefix(string(id), id.Backend()+"-") + "-" + b.state[:8]
}

// volumeName is the name of the volume that stands in for a sandbox's workspace on another machine.
func (b *Backend) volumeName(id sandbox.ID) string { return b.containerName(id) + "-workspace" }

// fillerName is the name of the container by which that volume is filled. It is there as long as nothing
// else tells whether the volume is complete.
func (b *Backend) fillerName(id sandbox.ID) string { return b.volumeName(id) + "-fill" }

// helperVolume is the name of the volume with a helper.
func (b *Backend) helperVolume(sum string) string {
	return "berth-helper-" + b.state[:8] + "-" + sum[:12]
}
