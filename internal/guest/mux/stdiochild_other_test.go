//go:build !linux

package mux_test

func stdioChild() int { return 1 }
