#!/usr/bin/env bash
# Writes the documents that are made from the code, by running the tests that keep them current:
# docs/capabilities.md (what each backend and bridge can do) and docs/dependencies.txt.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

scripts/build.sh
export BERTH_WRITE_DOCS=1 BERTH_REQUIRE_ENGINES=1
go test -count=1 -run '^TestCapabilities' ./integration/...
go test -count=1 -run '^TestDependencies' ./internal/archtest
