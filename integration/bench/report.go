package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Report is the result of one run.
type Report struct {
	Machine Machine `json:"machine"`
	// Short says that the run was shortened: fewer samples, smaller sizes.
	Short bool `json:"short,omitempty"`
	// Load is the machine's load average over one minute before and after the run.
	Load  [2]float64 `json:"load"`
	Parts []Part     `json:"parts"`
}

// Part is the result of one backend.
type Part struct {
	Backend string `json:"backend"`
	// Missing is why nothing was measured.
	Missing  string    `json:"missing,omitempty"`
	Sections []Section `json:"sections"`
}

// Section is the result of one measure.
type Section struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// How tells what was done.
	How  string `json:"how"`
	Rows []Row  `json:"rows"`
	// Err is why the measure could not be completed: something did not work, which is a fault
	// and no question of time.
	Err string `json:"error,omitempty"`
}

// Failures lists what did not work. Missed budgets are none.
func (r *Report) Failures() []string {
	var out []string
	for _, p := range r.Parts {
		for _, f := range p.failures() {
			out = append(out, p.Backend+": "+f)
		}
	}
	return out
}

// failures lists what did not work.
func (p Part) failures() []string {
	var out []string
	for _, s := range p.Sections {
		if s.Err != "" {
			out = append(out, s.Name+": "+s.Err)
		}
		for _, row := range s.Rows {
			if row.Budget.Zero && row.Verdict == Missed {
				out = append(out, fmt.Sprintf("%s: %s: %s, and it has to be 0", s.Name, row.Measured, format(row.Ours.Unit, row.Ours.Worst)))
			}
		}
	}
	return out
}

// WriteJSON writes the report for programs, in base units.
func (r *Report) WriteJSON(w io.Writer) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// WriteMarkdown writes the report as a document.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n" +
		"Written by `make bench`; do not edit. Every row comes from one run, in which we and the peer took turns round by round,\n" +
		"so that other load hits both alike. p50 is the median, p95 the 95th percentile towards the bad end (the slowest, the lowest\n" +
		"throughput). A ratio compares medians: \"the time\" is our time divided by the peer's, \"as fast\" is the other way round. Budgets are\n" +
		"those of section 7 of [design.md](design.md). A missed budget fails no test; wrong bytes, survivors and failed commands do.\n\n")
	if r.Short {
		b.WriteString("**This was a short run**: fewer samples and smaller sizes than `make bench` takes. It shows that the harness works, not how fast\nanything is.\n\n")
	}
	r.Machine.markdown(&b)
	fmt.Fprintf(&b, "| load average before and after | %.2f, %.2f |\n", r.Load[0], r.Load[1])
	if r.Load[0] > float64(r.Machine.CPUs)/2 {
		b.WriteString("\n**The machine was busy with other work** when the run began. Ratios say something all the same; times, and above all p95 and\n" +
			"worst, are those of a busy machine.\n")
	}
	for _, p := range r.Parts {
		p.markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown writes one part.
func (p Part) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", partHead(p.Backend))
	if p.Missing != "" {
		fmt.Fprintf(b, "\nNot measured: %s.\n", p.Missing)
		return
	}
	b.WriteByte('\n')
	p.summary(b)
	for _, s := range p.Sections {
		s.markdown(b)
	}
}

// partHead and sectionHead are the headings of the document.
func partHead(backend string) string  { return "## Backend `" + backend + "`" }
func sectionHead(title string) string { return "### " + title }

// summary counts verdicts and names what is not met.
func (p Part) summary(b *strings.Builder) {
	count := map[Verdict]int{}
	var missed, open []string
	for _, s := range p.Sections {
		for _, row := range s.Rows {
			count[row.Verdict]++
			name := s.Title + ": " + row.Measured
			switch {
			case row.Verdict == Missed:
				missed = append(missed, fmt.Sprintf("%s is %s, the budget is %s", name, row.figure(), row.budget()))
			case row.Verdict == NotMeasured && row.Budget != Budget{}:
				open = append(open, fmt.Sprintf("%s against %s: %s", name, row.Peer, row.Note))
			}
		}
	}
	fmt.Fprintf(b, "%d budgets met, %d missed, %d not measured here.\n", count[Met], count[Missed], len(open))
	list := func(head string, items []string) {
		if len(items) > 0 {
			b.WriteString("\n" + head + "\n\n")
			for _, item := range items {
				b.WriteString("- " + strings.Join(strings.Fields(item), " ") + "\n")
			}
		}
	}
	list("Missed:", missed)
	list("Not measured here:", open)
	list("Did not work:", p.failures())
}

// markdown writes one section.
func (s Section) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n\n%s\n\n", sectionHead(s.Title), wrapped(s.How))
	if s.Err != "" {
		fmt.Fprintf(b, "**Did not work:** %s\n\n", cell(s.Err))
	}
	if len(s.Rows) == 0 {
		return
	}
	b.WriteString("| Measured | Ours p50 | p95 | Samples | Peer | p50 | p95 | Ratio | Budget | Result |\n")
	b.WriteString("| --- | ---: | ---: | ---: | --- | ---: | ---: | --- | --- | --- |\n")
	for _, r := range s.Rows {
		ours50, ours95 := r.Ours.cells()
		if r.Budget.MaxWorst > 0 && r.Ours != nil {
			ours95 += ", worst " + format(r.Ours.Unit, r.Ours.Worst)
		}
		samples := "–"
		if r.Ours != nil {
			samples = fmt.Sprint(r.Ours.Samples)
		}
		peer50, peer95 := r.Theirs.cells()
		result := string(r.Verdict)
		switch r.Verdict {
		case NoBudget:
			result = ""
		case Missed:
			result = "**missed**"
		}
		if r.Note != "" {
			result = strings.TrimPrefix(result+"; ", "; ") + r.Note
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			cell(r.Measured), ours50, ours95, samples, cell(cmp.Or(r.Peer, "–")), peer50, peer95,
			cmp.Or(r.ratioText(), "–"), cmp.Or(r.budget(), "–"), cell(cmp.Or(result, "–")))
	}
}

// cells are the two figures of a quantity.
func (q *Quantity) cells() (p50, p95 string) {
	if q == nil {
		return "–", "–"
	}
	return format(q.Unit, q.P50), format(q.Unit, q.P95)
}

// ratioText is the ratio in words.
func (r Row) ratioText() string {
	switch {
	case r.Ratio == 0:
		return ""
	case r.Sense == Cost:
		return factor(r.Ratio) + " the time"
	default:
		return factor(r.Ratio) + " as fast"
	}
}

// figure is what the budget of the row is about.
func (r Row) figure() string {
	switch b := r.Budget; {
	case b.MaxRatio > 0 || b.MinRatio > 0:
		return r.ratioText()
	case b.MaxP50 > 0:
		return format(r.Ours.Unit, r.Ours.P50)
	default:
		return format(r.Ours.Unit, r.Ours.Worst)
	}
}

// cell makes a text fit into a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// wrapped breaks a paragraph into lines.
func wrapped(text string) string {
	const width = 130
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
