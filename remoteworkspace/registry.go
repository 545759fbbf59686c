package remoteworkspace

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/workberth/workberth/fsbridge"
)

// State is the state of a directory's binding.
type State string

// The states. Only StateReady serves documents; StateDeclared and StateStopped
// refuse every call, and StateUnbound means local access.
const (
	StateUnbound  State = "unbound"
	StateDeclared State = "declared"
	StateReady    State = "ready"
	StateStopped  State = "stopped"
)

// RegistryOptions direct NewRegistry. The zero value is fine.
type RegistryOptions struct {
	// Canonical gives the true name of a workspace directory, so that a bound
	// workspace is recognised under another spelling. Nil resolves the links of this
	// machine. An error means that the spelling alone counts.
	Canonical func(dir string) (string, error)
	// Logger is told of bindings that begin and end; nil discards.
	Logger *slog.Logger
}

// Registry holds the bindings of a host. It is safe for concurrent use.
type Registry struct {
	canonical func(string) (string, error)
	log       *slog.Logger

	mu sync.Mutex
	// byName has each binding under its spelled and its true name.
	byName map[string]*binding
	all    []*binding
}

// binding is one declared directory.
type binding struct {
	dir string
	// registration is what is in force, nil unless ready.
	registration *registration
	stopped      bool
	// loadsSkills: the last access in force had LoadSkills.
	loadsSkills bool
}

// registration is one life of a binding's access.
type registration struct{ access Access }

// NewRegistry makes a registry without bindings.
func NewRegistry(opts RegistryOptions) *Registry {
	r := &Registry{canonical: opts.Canonical, log: opts.Logger, byName: make(map[string]*binding)}
	if r.canonical == nil {
		r.canonical = resolveLinks
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	return r
}

// Declare says, at configuration time, that dir is a bound workspace: from now on
// its documents are never served from this machine's disk. dir is absolute and need
// not exist here. Declaring a directory again changes nothing. Keeps RWS-16.
func (r *Registry) Declare(dir string) error {
	names, err := r.names(dir)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.find(names) != nil {
		return nil
	}
	b := &binding{dir: names[0]}
	for _, n := range names {
		r.byName[n] = b
	}
	r.all = append(r.all, b)
	r.log.Debug("workspace binding declared", "dir", b.dir)
	return nil
}

// Register puts an access in force for a declared directory, until release is
// called. release may be called any number of times; calls under way are refused
// their next command then. While a registration is in force another one is
// ErrRegistered; after its release the directory can be registered again, as after
// a lost connection. Keeps RWS-01, RWS-03.
func (r *Registry) Register(dir string, a Access) (release func(), err error) {
	if a.Bridge == nil {
		return nil, fmt.Errorf("register %s: the access has no bridge: %w", fsbridge.DisplayPath(dir), ErrInvalid)
	}
	names, err := r.names(dir)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.find(names)
	switch {
	case b == nil:
		return nil, fmt.Errorf("register %s: %w; call Declare when the configuration is read, so that no call is served locally before",
			fsbridge.DisplayPath(dir), ErrNotDeclared)
	case b.registration != nil:
		return nil, fmt.Errorf("register %s: %w; release the first registration before", fsbridge.DisplayPath(dir), ErrRegistered)
	}
	reg := &registration{access: a}
	b.registration = reg
	b.loadsSkills = a.LoadSkills != nil
	r.log.Info("workspace access registered", "dir", b.dir)
	return func() { r.release(b, reg) }, nil
}

// release ends one registration, and no later one.
func (r *Registry) release(b *binding, reg *registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.registration != reg {
		return
	}
	b.registration, b.stopped = nil, true
	r.log.Info("workspace access stopped", "dir", b.dir)
}

// State tells the state of a directory's binding.
func (r *Registry) State(dir string) State {
	names, err := r.names(dir)
	if err != nil {
		return StateUnbound
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(names).state()
}

// BindingInfo describes a binding.
type BindingInfo struct {
	Dir   string `json:"dir"`
	State State  `json:"state"`
}

// Bindings lists the bindings by directory.
func (r *Registry) Bindings() []BindingInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]BindingInfo, 0, len(r.all))
	for _, b := range r.all {
		list = append(list, BindingInfo{Dir: b.dir, State: b.state()})
	}
	slices.SortFunc(list, func(a, b BindingInfo) int { return strings.Compare(a.Dir, b.Dir) })
	return list
}

// state must be called with the registry locked.
func (b *binding) state() State {
	switch {
	case b == nil:
		return StateUnbound
	case b.registration != nil:
		return StateReady
	case b.stopped:
		return StateStopped
	}
	return StateDeclared
}

// find must be called with the registry locked.
func (r *Registry) find(names []string) *binding {
	for _, n := range names {
		if b := r.byName[n]; b != nil {
			return b
		}
	}
	return nil
}

// lookup returns what is in force for dir. Without a binding reg is nil and state is
// StateUnbound; a binding that is not ready is an *UnavailableError. key is the
// same for every spelling of a directory.
func (r *Registry) lookup(dir string) (reg *registration, key string, err error) {
	names, err := r.names(dir)
	if err != nil {
		return nil, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.find(names)
	switch {
	case b == nil:
		return nil, names[len(names)-1], nil
	case b.registration == nil:
		return nil, "", &UnavailableError{Dir: dir, State: b.state()}
	}
	return b.registration, b.dir, nil
}

// holds says whether a registration is still in force for dir; it does no I/O.
func (r *Registry) holds(key string, reg *registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.byName[key]
	if b != nil && b.registration == reg {
		return nil
	}
	return &UnavailableError{Dir: key, State: b.state()}
}

// unbound says whether a directory still has no binding; it does no I/O.
func (r *Registry) unbound(key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.byName[key]; b != nil {
		return &UnavailableError{Dir: key, State: b.state()}
	}
	return nil
}
