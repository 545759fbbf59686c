package libpod

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container/enginetest"
)

// TestEngines runs the suite on the services that the environment names: BERTH_TEST_PODMAN with
// the address of one of version 4, BERTH_TEST_PODMAN5 of one of version 5, and
// BERTH_TEST_PODMAN_ROOTLESS of one that the user with the number BERTH_TEST_PODMAN_ROOTLESS_USER runs. All must see the directory of
// temporary files at the same path as this process.
func TestEngines(t *testing.T) {
	for variable, version := range map[string]string{
		"BERTH_TEST_PODMAN": "4.", "BERTH_TEST_PODMAN5": "5.", "BERTH_TEST_PODMAN_ROOTLESS": "",
	} {
		t.Run(variable, func(t *testing.T) {
			address := os.Getenv(variable)
			if address == "" {
				if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
					t.Fatalf("%s names no Podman service", variable)
				}
				t.Skipf("%s names no Podman service", variable)
			}
			c := open(t, Options{Address: address})
			about, err := c.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if about.Product != "podman" || !strings.HasPrefix(about.Version, version) || !strings.HasPrefix(about.API, version) {
				t.Fatalf("%s is %s %s with the protocol %s", variable, about.Product, about.Version, about.API)
			}
			// Not set, or empty: not told.
			user, _ := strconv.Atoi(os.Getenv("BERTH_TEST_PODMAN_ROOTLESS_USER"))
			enginetest.Run(t, c, enginetest.KeepUser(user),
				enginetest.Pause(c.Pause), enginetest.RemoveImage(c.removeImage),
				enginetest.Unreachable(open(t, Options{Address: "unix://" + filepath.Join(t.TempDir(), "none")})))
		})
	}
}

// open makes a client that is closed with the test.
func open(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *Client) removeImage(ctx context.Context, image string) error {
	return c.get(ctx, call{
		op: "remove image " + image, method: http.MethodDelete, path: "/images/" + url.PathEscape(image),
	}, nil)
}
