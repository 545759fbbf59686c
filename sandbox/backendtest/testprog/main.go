// Command testprog is what the suite of package backendtest runs inside a sandbox: a static
// program of many small roles, so that the suite needs nothing of an image. The first
// argument is the role, the others belong to it. A role that fails writes why to standard
// error and exits with code 99.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// failure is the exit code of a role that could not do its work.
const failure = 99

// roles are what the program can play.
func roles() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		// Streams.
		"args":    dumpArgs,
		"env":     dumpEnv,
		"emit":    emit,
		"print":   printBytes,
		"cat":     cat,
		"count":   count,
		"digest":  digest,
		"endless": endless,
		"exit":    exit,
		"suicide": suicide,
		"linger":  linger,
		"tty":     tty,
		// Processes.
		"true":      func([]string) error { return nil },
		"wait":      wait,
		"late":      late,
		"litter":    litter,
		"tree":      tree,
		"node":      node,
		"run-on":    runOn,
		"on-signal": onSignal,
		"bomb":      bomb,
		"regicide":  regicide,
		"procs":     procs,
		"daemon":    daemon,
		// Files.
		"pwd":    pwd,
		"read":   readFile,
		"write":  writeFile,
		"list":   list,
		"stat":   stat,
		"fill":   fill,
		"remove": removeFile,
		"swap":   swap,
		"oracle": oracle,
		// Walls.
		"self":    self,
		"probe":   probe,
		"connect": connect,
		"alloc":   alloc,
		"open":    openMany,
		"kill":    killPid,
		"syscall": trySyscall,
		"environ": environ,
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "testprog: no role; one of", strings.Join(slices.Sorted(maps.Keys(roles())), " "))
		os.Exit(failure)
	}
	role, ok := roles()[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "testprog: no role %q\n", os.Args[1])
		os.Exit(failure)
	}
	if err := role(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "testprog %s: %v\n", os.Args[1], err)
		os.Exit(failure)
	}
}

// number parses argument i.
func number(args []string, i int) (int, error) {
	if i >= len(args) {
		return 0, fmt.Errorf("argument %d is missing", i+1)
	}
	return strconv.Atoi(args[i])
}

// text returns argument i.
func text(args []string, i int) (string, error) {
	if i >= len(args) {
		return "", fmt.Errorf("argument %d is missing", i+1)
	}
	return args[i], nil
}
