#!/usr/bin/env bash
# Everything that must hold before a change is accepted, on a machine that has Go and is otherwise
# fresh. Every check runs, also after one has failed; the last line says how it ended.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

failed=()
outputs=$(mktemp -d)

# ended NAME START STATUS says how long a check took and remembers a failure.
ended() {
	if [ "$3" -eq 0 ]; then
		echo "-- $1: $(seconds_since "$2")"
	else
		failed+=("$1")
		echo "-- $1: FAILED after $(seconds_since "$2")"
	fi
}

# step NAME COMMAND... runs one check and keeps what it prints.
step() {
	local name=$1 start=$SECONDS status=0
	shift
	say "$name"
	"$@" 2>&1 | tee -- "$outputs/$name" || status=$?
	ended "$name" "$start" "$status"
}

# must NAME COMMAND... runs, in this shell, what the checks make no sense without.
must() {
	local name=$1 start=$SECONDS status=0
	shift
	say "$name"
	"$@" || status=$?
	ended "$name" "$start" "$status"
	[ ${#failed[@]} -eq 0 ] || finish
}

# recall NAME prints what matters of a failed check's output once more, so that it stands at the
# end of a long log.
recall() {
	printf '\n-- %s failed:\n' "$1"
	[ ! -e "$outputs/$1" ] || grep -vE '^(ok|\?) |^go: downloading|^[[:space:]]*(=== RUN|--- PASS)' "$outputs/$1" | tail -n 60 || true
}

cleanup() {
	engines_stop
	rm -rf -- "$outputs"
}

finish() {
	engines_stop
	if [ ${#failed[@]} -gt 0 ]; then
		for name in "${failed[@]}"; do recall "$name"; done
		[ ${#ENGINES_MISSING[@]} -eq 0 ] || printf '\n-- not here:\n%s\n' "$(printf '%s\n' "${ENGINES_MISSING[@]}")"
		printf '\nmake test: FAILED (%s) in %s\n' "$(IFS=,; echo "${failed[*]}")" "$(seconds_since 0)"
		exit 1
	fi
	printf '\nmake test: all checks passed in %s\n' "$(seconds_since 0)"
}

check_release() {
	scripts/build.sh release &&
		go vet -tags berth_embed ./internal/helperbin &&
		go test -count=1 -tags berth_embed ./internal/helperbin
}

trap cleanup EXIT

must setup scripts/setup.sh test
must engines engines_start
must build scripts/build.sh

export BERTH_REQUIRE_ENGINES=1
step format scripts/format.sh --check
step modules go mod tidy -diff
step vet go vet ./...
step race scripts/gotest.sh race
step full scripts/gotest.sh full
step containers scripts/gotest.sh containers
step integration scripts/gotest.sh integration
step release check_release
step lint scripts/lint.sh
finish
