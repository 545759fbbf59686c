package skills

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/internal/helpertest"
)

func TestMain(m *testing.M) { os.Exit(helpertest.Main(m, func() error { return goleak.Find() })) }

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}
