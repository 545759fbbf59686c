#!/usr/bin/env bash
# Measures: runs the benchmarks of the integration tests with programs built for it, keeps the raw
# output in bin/bench.txt, and lets the report generator, which reads it from standard input,
# write docs/benchmarks.md. BENCH=regexp selects benchmarks and only prints them.
# Run it on a quiet machine.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

trap engines_stop EXIT
engines_start
scripts/build.sh

BERTH_REQUIRE_ENGINES=1 go test -run '^$' -bench "${BENCH:-.}" -benchmem -timeout 60m ./integration/... | tee bin/bench.txt
if [ -z "${BENCH:-}" ] && [ -d integration/benchreport ]; then
	go run ./integration/benchreport <bin/bench.txt
fi
