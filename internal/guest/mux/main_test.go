package mux_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(stdioVar) != "" {
		os.Exit(stdioChild())
	}
	goleak.VerifyTestMain(m)
}

// stdioVar makes the test program the child of TestStdio.
const stdioVar = "MUX_TEST_STDIO"
