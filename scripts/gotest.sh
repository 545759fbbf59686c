#!/usr/bin/env bash
# Runs one part of the Go tests; `make test` runs race, full and integration.
#
#   scripts/gotest.sh short         every package with -short
#   scripts/gotest.sh race          the same under the race detector, but for the integration tests
#   scripts/gotest.sh full          every package but those, with all rounds, sizes and crowds
#   scripts/gotest.sh integration   the end-to-end tests, which drive programs built beforehand
#
# Further arguments go to `go test`. Where BERTH_REQUIRE_ENGINES=1 is set, a test that lacks an
# engine or a program fails instead of being skipped.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

# units prints every package but the integration tests.
units() { go list ./... | grep -v '/integration\(/\|$\)'; }

part=${1:-}
[ $# -eq 0 ] || shift
case $part in
short)
	exec go test -short "$@" ./...
	;;
race)
	# aferofs is left to the full round: its suites over memory take minutes under the detector.
	# shellcheck disable=SC2046 # one word per package
	CGO_ENABLED=1 exec go test -race -short -count=1 -timeout 20m "$@" $(units | grep -v '/fsbridge/aferofs$')
	;;
full)
	# shellcheck disable=SC2046 # one word per package
	exec go test -count=1 -timeout 20m "$@" $(units)
	;;
integration)
	exec go test -count=1 -timeout 15m "$@" ./integration/...
	;;
*) die "usage: scripts/gotest.sh short|race|full|integration [go test flags]" ;;
esac
