// Package enginetest checks that a container.Engine keeps its contract, on a real engine. The
// client of every engine passes the same checks:
//
//	enginetest.Run(t, engine, enginetest.Pause(client.pause), enginetest.RemoveImage(client.removeImage))
//
// The images are made of a static busybox of this machine, so that no registry is asked for one.
// What the suite makes carries a random label and name, and is removed at the end.
//
// What an engine cannot do, by its own description or for want of an option, is skipped with the
// reason. Where BERTH_REQUIRE_ENGINES=1 is set, a missing busybox or option is a failure.
package enginetest
