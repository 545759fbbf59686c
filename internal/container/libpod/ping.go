package libpod

import "context"

// Ping asks whether a Podman service answers, which costs next to nothing.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.negotiate(ctx, "ping")
	return err
}
