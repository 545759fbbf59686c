package libpod

import (
	"context"
	"net/http"
)

// Pause freezes every process of a container.
func (c *Client) Pause(ctx context.Context, id string) error {
	return c.plain(ctx, "pause", http.MethodPost, id, "/pause", nil)
}
