//go:build linux && !race

package reaper

const raceEnabled = false
