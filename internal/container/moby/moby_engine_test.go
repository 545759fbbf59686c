package moby

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container/enginetest"
)

// TestEngine runs the suite on the engine that BERTH_TEST_DOCKER names. It must see the directory of
// temporary files at the same path as this process.
func TestEngine(t *testing.T) {
	address := os.Getenv("BERTH_TEST_DOCKER")
	if address == "" {
		if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
			t.Fatal("BERTH_TEST_DOCKER names no engine")
		}
		t.Skip("BERTH_TEST_DOCKER names no engine")
	}
	c := open(t, address)
	enginetest.Run(t, c, enginetest.Pause(c.Pause), enginetest.RemoveImage(c.removeImage),
		enginetest.Unreachable(open(t, "unix://"+filepath.Join(t.TempDir(), "none"))))
}

// open makes a client that is closed with the test.
func open(t *testing.T, address string) *Client {
	t.Helper()
	c, err := New(Options{Host: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *Client) removeImage(ctx context.Context, image string) error {
	_, err := c.api.ImageRemove(ctx, image, client.ImageRemoveOptions{Force: true})
	return c.translate(err)
}
