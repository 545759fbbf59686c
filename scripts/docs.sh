#!/usr/bin/env bash
# Writes the documents that are made from the code: docs/capabilities.md, from what the suites find
# out about each backend and bridge on this machine, and docs/dependencies.txt.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

trap engines_stop EXIT
scripts/setup.sh test
engines_start
scripts/build.sh
export BERTH_REQUIRE_ENGINES=1
go run ./integration/capmatrix
BERTH_WRITE_DOCS=1 go test -count=1 -run '^TestDependencies' ./internal/archtest
