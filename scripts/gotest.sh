#!/usr/bin/env bash
# Runs one part of the Go tests; `make test` runs race and integration, which together are all.
#
#   scripts/gotest.sh short         every package with -short, no engine needed
#   scripts/gotest.sh race          every package but the integration tests, under the race detector
#   scripts/gotest.sh integration   the end-to-end tests, without it: they drive programs built
#                                   beforehand, and measure time
#
# Further arguments go to `go test`. Where BERTH_REQUIRE_ENGINES=1 is set, a test that lacks an
# engine or a program fails instead of being skipped.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

part=${1:-}
[ $# -eq 0 ] || shift
case $part in
short)
	exec go test -short "$@" ./...
	;;
race)
	packages=$(go list ./... | grep -v '/integration\(/\|$\)')
	# shellcheck disable=SC2086 # one word per package
	CGO_ENABLED=1 exec go test -race -count=1 "$@" $packages
	;;
integration)
	exec go test -count=1 -timeout 15m "$@" ./integration/...
	;;
*) die "usage: scripts/gotest.sh short|race|integration [go test flags]" ;;
esac
