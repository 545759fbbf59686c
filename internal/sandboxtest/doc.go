// Package sandboxtest makes sandboxes for tests of what stands above them: one of each backend, with a
// workspace whose files the test sees on this machine. It is for tests only.
//
// A [Place] is what a sandbox is made of. It can be sent to another process of the test as JSON, so that
// this process can be killed while it works there. Its connection can be cut, and the helper or the
// container killed, at a moment of the test's choice.
//
// A place that cannot be had skips the test with the reason, or fails it where BERTH_REQUIRE_ENGINES=1.
// The tests run under [helpertest.Main].
package sandboxtest
