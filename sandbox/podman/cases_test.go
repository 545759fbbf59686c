package podman_test

import "testing"

// What users of systems of this kind have reported.
func TestCases(t *testing.T) { subject(four).Cases(t) }

func TestCasesFive(t *testing.T) { subject(five).Cases(t) }

func TestCasesRootless(t *testing.T) { subject(rootless).CasesRootless(t) }
