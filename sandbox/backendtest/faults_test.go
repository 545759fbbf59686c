package backendtest_test

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// faults are what may be wrong with a backend, each of which the suite must find.
type faults struct {
	tokenLeak, finalizeKills                               bool
	prepareAfterRevoke, buildAfterRevoke, assertAlways     bool
	spawnAfterRevoke, spawnAgain, interruptAfterRevoke     bool
	writeAfterRevoke, guardIgnored, tornWrites             bool
	terminateNothing, terminateDirectOnly, terminateAll    bool
	noGrace, custodyNotPinned, leavesLeftovers, closeKeeps bool
	dropsStart, dropsEnd, bytesMangled, stdinErrorIsEOF    bool
	signalsAreCodes, codesAreMasked, failuresAreSuccess    bool
	envLineBased, directoryFallsBack, untypedStartErrors   bool
	ttyDefaultSize, noValidation, oneForAll, setupAgain    bool
	noSweep, removeTakesWorkspace                          bool
}

// wrongs lists the names of the faults.
func wrongs() []string {
	var names []string
	t := reflect.TypeFor[faults]()
	for field := range t.Fields() {
		names = append(names, field.Name)
	}
	return names
}

// withFault has one fault.
func withFault(t testing.TB, name string) (f faults) {
	t.Helper()
	if name == "" {
		return f
	}
	set := map[string]*bool{
		"tokenLeak": &f.tokenLeak, "finalizeKills": &f.finalizeKills,
		"prepareAfterRevoke": &f.prepareAfterRevoke, "buildAfterRevoke": &f.buildAfterRevoke, "assertAlways": &f.assertAlways,
		"spawnAfterRevoke": &f.spawnAfterRevoke, "spawnAgain": &f.spawnAgain, "interruptAfterRevoke": &f.interruptAfterRevoke,
		"writeAfterRevoke": &f.writeAfterRevoke, "guardIgnored": &f.guardIgnored, "tornWrites": &f.tornWrites,
		"terminateNothing": &f.terminateNothing, "terminateDirectOnly": &f.terminateDirectOnly, "terminateAll": &f.terminateAll,
		"noGrace": &f.noGrace, "custodyNotPinned": &f.custodyNotPinned, "leavesLeftovers": &f.leavesLeftovers, "closeKeeps": &f.closeKeeps,
		"dropsStart": &f.dropsStart, "dropsEnd": &f.dropsEnd, "bytesMangled": &f.bytesMangled, "stdinErrorIsEOF": &f.stdinErrorIsEOF,
		"signalsAreCodes": &f.signalsAreCodes, "codesAreMasked": &f.codesAreMasked, "failuresAreSuccess": &f.failuresAreSuccess,
		"envLineBased": &f.envLineBased, "directoryFallsBack": &f.directoryFallsBack, "untypedStartErrors": &f.untypedStartErrors,
		"ttyDefaultSize": &f.ttyDefaultSize, "noValidation": &f.noValidation, "oneForAll": &f.oneForAll, "setupAgain": &f.setupAgain,
		"noSweep": &f.noSweep, "removeTakesWorkspace": &f.removeTakesWorkspace,
	}[name]
	if set == nil {
		t.Fatalf("no fault %q", name)
	}
	*set = true
	return f
}

// spoilStdin takes a failure of the caller's reader for the end of the input.
func (f faults) spoilStdin(r io.Reader) io.Reader {
	if r == nil || !f.stdinErrorIsEOF {
		return r
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if err != nil {
			err = io.EOF
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// spoilOutput loses or changes bytes.
func (f faults) spoilOutput(w io.Writer) io.Writer {
	total := 0
	return writerFunc(func(p []byte) (int, error) {
		n := len(p)
		first := total == 0
		total += n
		switch {
		case f.dropsStart && first && n >= 8:
			p = p[8:]
		case f.dropsEnd && total > 400_000 && n > 100:
			p = p[:n-1]
		case f.bytesMangled:
			p = bytes.ReplaceAll(p, []byte("\xff"), []byte("\uFFFD"))
		}
		_, err := w.Write(p)
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// spoilStatus tells something else.
func (f faults) spoilStatus(s sandbox.ExitStatus) sandbox.ExitStatus {
	switch {
	case f.signalsAreCodes:
		s.Signal = 0
	case f.codesAreMasked && s.Code != 0:
		s.Code = 1
	case f.failuresAreSuccess && s.Signal != 0:
		s = sandbox.ExitStatus{}
	}
	return s
}
