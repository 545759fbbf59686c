#!/usr/bin/env bash
# Everything that must hold before a change is accepted, on a machine that has Go and is otherwise
# fresh. Every check runs, also after one has failed; the last line says how it ended.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

failed=()

# step NAME COMMAND... runs one check, prints how long it took, and remembers a failure.
step() {
	local name=$1 start=$SECONDS
	shift
	say "$name"
	if "$@"; then
		echo "-- $name: $(seconds_since "$start")"
	else
		failed+=("$name")
		echo "-- $name: FAILED after $(seconds_since "$start")"
	fi
}

finish() {
	engines_stop
	if [ ${#failed[@]} -gt 0 ]; then
		printf '\nmake test: FAILED (%s) in %s\n' "$(IFS=,; echo "${failed[*]}")" "$(seconds_since 0)"
		exit 1
	fi
	printf '\nmake test: all checks passed in %s\n' "$(seconds_since 0)"
}

# must NAME COMMAND... is a step without which the others make no sense.
must() {
	step "$@"
	[ ${#failed[@]} -eq 0 ] || finish
}

check_release() {
	scripts/build.sh release &&
		go vet -tags berth_embed ./internal/helperbin &&
		go test -count=1 -tags berth_embed ./internal/helperbin
}

trap engines_stop EXIT

must setup scripts/setup.sh test
must engines engines_start
must build scripts/build.sh

export BERTH_REQUIRE_ENGINES=1
step format scripts/format.sh --check
step modules go mod tidy -diff
step vet go vet ./...
step race scripts/gotest.sh race
step full scripts/gotest.sh full
step integration scripts/gotest.sh integration
step release check_release
step lint scripts/lint.sh
finish
