package podman_test

import (
	"os"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/containertest"
	"github.com/workberth/workberth/internal/container/libpod"
	"github.com/workberth/workberth/sandbox/backendtest"
	"github.com/workberth/workberth/sandbox/podman"
)

func subject(variable string) containertest.Subject {
	return containertest.Subject{
		Name: podman.Name + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, four), "_", "-")),
		Var:  variable,
		// That of Debian 13 runs in a root directory and a mount namespace of its own.
		BlindToMounts: variable == five,
		Open: func(address string, o containertest.Options) (containertest.Backend, error) {
			return podman.New(podman.Options{Host: address, StateDir: o.StateDir, Logger: o.Logger, Getenv: o.Getenv})
		},
		Connect: func(address string) (container.Engine, error) {
			return libpod.New(libpod.Options{Address: address})
		},
	}
}

// The engines to test with: of Debian 12, of Debian 13, and one without root's rights.
const (
	four     = "BERTH_TEST_PODMAN"
	five     = "BERTH_TEST_PODMAN5"
	rootless = "BERTH_TEST_PODMAN_ROOTLESS"
)

func TestMain(m *testing.M) {
	os.Exit(containertest.Main(m, subject(four), subject(five), subject(rootless)))
}

// The suite, as the user that runs the tests and as an ordinary one. SBX-06
func TestConformance(t *testing.T) { backendtest.Run(t, subject(four).Target(t)) }

func TestConformanceFive(t *testing.T) { backendtest.Run(t, subject(five).Target(t)) }

func TestConformanceOrdinaryUser(t *testing.T) { subject(four).OrdinaryUser(t) }

func TestConformanceRootless(t *testing.T) { subject(rootless).Rootless(t) }

// What happens to containers behind our back.
func TestLife(t *testing.T) { subject(four).Life(t) }

func TestLifeFive(t *testing.T) { subject(five).Life(t) }

// The suite with the engine on another machine. SBX-06 C051
func TestElsewhere(t *testing.T) { backendtest.Run(t, subject(four).Elsewhere(t)) }

// What is special about an engine on another machine. C051
func TestCasesElsewhere(t *testing.T) { subject(four).CasesElsewhere(t) }

// Where the address names no socket, the podman program of the other machine does. C051
func TestAskedElsewhere(t *testing.T) {
	socket := strings.TrimPrefix(subject(four).Address(t), "unix://")
	subject(four).BehindWrapper(t, `[ "$SSH_ORIGINAL_COMMAND" = "podman info --format '{{.Host.RemoteSocket.Path}}'" ] && echo unix://`+socket, "")
}
