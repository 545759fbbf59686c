package docker_test

import (
	"os"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/containertest"
	"github.com/workberth/workberth/internal/container/moby"
	"github.com/workberth/workberth/sandbox/backendtest"
	"github.com/workberth/workberth/sandbox/docker"
)

func subject() containertest.Subject {
	return containertest.Subject{
		Name: docker.Name,
		Var:  "BERTH_TEST_DOCKER",
		Open: func(address string, o containertest.Options) (containertest.Backend, error) {
			return docker.New(docker.Options{Host: address, StateDir: o.StateDir, Logger: o.Logger, Getenv: o.Getenv})
		},
		Connect: func(address string) (container.Engine, error) { return moby.New(moby.Options{Host: address}) },
	}
}

func TestMain(m *testing.M) { os.Exit(containertest.Main(m, subject())) }

// The suite, as the user that runs the tests and as an ordinary one. SBX-06
func TestConformance(t *testing.T) { backendtest.Run(t, subject().Target(t)) }

func TestConformanceOrdinaryUser(t *testing.T) { subject().OrdinaryUser(t) }

// What happens to containers behind our back.
func TestLife(t *testing.T) { subject().Life(t) }

// The suite with the engine on another machine. SBX-06 C051
func TestElsewhere(t *testing.T) { backendtest.Run(t, subject().Elsewhere(t)) }

// What is special about an engine on another machine. C051
func TestCasesElsewhere(t *testing.T) { subject().CasesElsewhere(t) }

// Where the other machine has no docker program, ssh forwards the engine's socket. C051
func TestForwardedElsewhere(t *testing.T) {
	subject().BehindWrapper(t, "exit 127", strings.TrimPrefix(subject().Address(t), "unix://"))
}
