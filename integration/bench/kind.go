package bench

// kind is what measures, budgets and texts depend on beside the backend itself.
type kind struct {
	// engine is the name and the program of the container engine that is compared with.
	engine string
	// contained: the sandboxes are containers of that engine, and the peer is the same container
	// without us. Otherwise a plain bwrap is a peer too.
	contained bool
}

// kindOf knows the backends.
func kindOf(backend string) kind {
	switch backend {
	case docker, podman:
		return kind{engine: backend, contained: true}
	}
	return kind{engine: docker}
}

// The engines.
const (
	docker = "docker"
	podman = "podman"
)

// Backends lists the backends that can be measured, in the order of the report.
func Backends() []string { return []string{"bubblewrap", docker, podman, sshBackend} }

// program is a subcommand of the engine's program, for texts.
func (k kind) program(subcommand string) string { return "`" + k.engine + " " + subcommand + "`" }

// choose picks between what is said of containers and of others.
func (k kind) choose(contained, other string) string {
	if k.contained {
		return contained
	}
	return other
}

// faster is a budget that only containers have.
func (k kind) faster(times float64) Budget {
	if k.contained {
		return Budget{MinRatio: times}
	}
	return Budget{}
}

// fewer picks a number of rounds: whoever makes containers, or moves bytes through an engine, takes
// longer for each.
func (k kind) fewer(usual, contained int) int {
	if k.contained {
		return contained
	}
	return usual
}
