package guestbox

import "context"

// Echo sends data to the helper and returns what comes back, which is the same. It
// shows that the sandbox lives, and what a round trip costs. It needs no authority.
func (h *Handle) Echo(ctx context.Context, data []byte) ([]byte, error) {
	if err := h.open(); err != nil {
		return nil, err
	}
	if err := h.box.gone(); err != nil {
		return nil, err
	}
	return h.box.conn.Echo(ctx, data)
}
