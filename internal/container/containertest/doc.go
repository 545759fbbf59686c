// Package containertest tests backends that run sandboxes in containers, against real engines: the
// suite of package backendtest, also as an ordinary user, and what only containers can do: be paused,
// killed, removed and starved behind our back. It is for tests only.
package containertest
