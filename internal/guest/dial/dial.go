// Package dial is the helper's role that connects standard input and output with a port of the
// sandbox's own loopback. It is started as a command of the sandbox, once per connection, and can
// reach nothing that other commands cannot.
package dial

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// Connected is the first byte written once the connection stands; what follows is the peer's.
const Connected = 0

// Run connects to a port of 127.0.0.1, or else of ::1, and copies both ways. The end of in is passed
// on as the end of one direction; the peer's end is the end of all. An error means that there was no
// connection, and that nothing was written.
func Run(in io.Reader, out io.Writer, port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is no port", port)
	}
	conn, err := connect(int(n))
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := out.Write([]byte{Connected}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, in) // a peer that reads no more has its reasons
		_ = conn.CloseWrite()    // it may be over
	}()
	_, _ = io.Copy(out, conn) // a connection that breaks has ended
	return nil
}

// connect tries both loopback addresses. It looks no name up.
func connect(port int) (*net.TCPConn, error) {
	conn, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err == nil {
		return conn, nil
	}
	conn, err6 := net.DialTCP("tcp6", nil, &net.TCPAddr{IP: net.IPv6loopback, Port: port})
	if err6 == nil {
		return conn, nil
	}
	return nil, errors.Join(err, err6)
}
