package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchmarksDocument wants docs/benchmarks.md to come from a whole run in which everything
// worked. `make bench` writes it.
func TestBenchmarksDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatalf("%v; run `make bench`", err)
	}
	doc := string(data)
	for _, bad := range []string{"This was a short run", "Did not work"} {
		if strings.Contains(doc, bad) {
			t.Errorf("the document says %q; look at the reason, then run `make bench`", bad)
		}
	}
	for _, backend := range Backends() {
		_, part, ok := strings.Cut(doc, "\n"+partHead(backend)+"\n")
		if !ok {
			t.Errorf("there is no part for %s; run `make bench`", backend)
			continue
		}
		part, _, _ = strings.Cut(part, "\n## ")
		for _, m := range measuresOf(backend) {
			_, section, ok := strings.Cut(part, "\n"+sectionHead(m.title)+"\n")
			if !ok {
				t.Errorf("%s: there is no section %q; run `make bench`", backend, m.title)
				continue
			}
			section, _, _ = strings.Cut(section, "\n### ")
			if !strings.Contains(section, wrapped(m.how(kindOf(backend)))) || strings.Count(section, "\n|") < 3 {
				t.Errorf("%s: section %q is not what is measured now; run `make bench`", backend, m.title)
			}
		}
	}
}
