package docker_test

import "testing"

// What users of systems of this kind have reported.
func TestCases(t *testing.T) { subject().Cases(t) }
