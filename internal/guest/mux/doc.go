// Package mux carries frames of many streams over one connection: a [Sender] that
// any number of goroutines share, and the two halves of flow control for one
// channel of one stream, [Inflow] on the side that receives and [Outflow] on the
// side that sends.
//
// It knows frames and credit. It does not know calls, operations or who is the
// server.
//
// # Flow control
//
// A sender holds credit for each channel and spends it with each byte of payload.
// It begins with wire.InitialWindow. The receiver returns credit as its consumer
// takes the bytes, so a consumer that stops holds up its own channel and no other:
// the goroutine that reads the connection never waits for anybody. More data than
// credit, or more credit than wire.MaxWindow, is a violation of the protocol.
package mux
