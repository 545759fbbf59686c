#!/usr/bin/env bash
# Runs one part of the Go tests; `make test` runs race, full and integration.
#
#   scripts/gotest.sh short         every package with -short
#   scripts/gotest.sh race          the same under the race detector, but for the integration tests
#   scripts/gotest.sh full          every package but those, with all rounds, sizes and crowds
#   scripts/gotest.sh containers    the suites of containers and of SSH hosts, several at a time
#   scripts/gotest.sh integration   the end-to-end tests, which drive programs built beforehand
#
# Further arguments go to `go test`. Where BERTH_REQUIRE_ENGINES=1 is set, a test that lacks an
# engine or a program fails instead of being skipped.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

# units prints every package but the integration tests, those that take longest first: what is begun
# last would be waited for alone.
units() {
	local all
	all=$(go list ./... | grep -v '/integration\(/\|$\)')
	grep '/sandbox/' <<<"$all"
	grep -v '/sandbox/' <<<"$all"
}

# The suites of these take minutes and wait most of the time: they run side by side.
containers='/sandbox/\(docker\|podman\|ssh\)$'

# So do many of the others, so that more packages than processors are tested at a time.
packages=$(($(nproc) + 2))

# lane NAME PACKAGE FLAGS... runs tests and keeps what they print.
lane() {
	local name=$1 start=$SECONDS
	shift
	if go test -count=1 -timeout 20m "$@" >"$lanes/$name" 2>&1; then
		echo "ok    $name ($(seconds_since "$start"))"
	else
		echo "FAIL  $name ($(seconds_since "$start"))"
		grep -vE '^[[:space:]]*(=== RUN|--- PASS)|level=(INFO|WARN|DEBUG)' "$lanes/$name" | tail -n 40
		return 1
	fi
}

part=${1:-} status=0
[ $# -eq 0 ] || shift
case $part in
short)
	# An engine on another machine is left to its lane: each sandbox takes seconds there.
	exec go test -short -skip '^TestElsewhere$' "$@" ./...
	;;
race)
	# Engines are waited for, and other users do the same: once, in the other rounds, is enough. The
	# suites of aferofs and the suite's own tests are left to the full round: they take minutes under the
	# detector. The suite of backends runs on bubblewrap here, and on the others without the detector;
	# Podman's other tests are Docker's with another client, and left to the lanes.
	elsewhere='/fsbridge/\(aferofs\|bridgetest\)$\|/sandbox/podman$'
	suite="$containers\|/sandbox/local\$"
	# shellcheck disable=SC2046 # one word per package
	CGO_ENABLED=1 go test -race -short -count=1 -timeout 20m -p "$packages" -skip '^TestConformance|Five$|Rootless$|Elsewhere$' "$@" $(units | grep "$suite" | grep -v "$elsewhere") &
	beside=$!
	# shellcheck disable=SC2046
	CGO_ENABLED=1 go test -race -short -count=1 -timeout 20m -p "$packages" -skip '^TestEngines?$|^TestConformanceOrdinaryUser$' "$@" $(units | grep -v "$elsewhere\|$suite") || status=1
	wait "$beside" || status=1
	exit "$status"
	;;
full)
	# shellcheck disable=SC2046 # one word per package
	exec go test -count=1 -timeout 20m -p "$packages" "$@" $(units | grep -v "$containers")
	;;
containers)
	lanes=$(mktemp -d)
	trap 'rm -rf -- "$lanes"' EXIT
	pids=()
	# About as long as each other. What runs inside is the same in every container: Docker's have all
	# rounds, and so has bubblewrap in the full part; the others have the short form. Podman with root's
	# rights for an ordinary user is left to by hand: the other two of its kinds and Docker show the same.
	{
		lane docker ./sandbox/docker -run '^TestConformance$' "$@" || bad=1
		lane docker-life ./sandbox/docker -skip '^TestConformance|Elsewhere$' "$@" || bad=1
		exit "${bad:-0}"
	} &
	pids+=($!)
	{
		lane podman ./sandbox/podman -short -run '^TestConformance$' "$@" || bad=1
		lane docker-ordinary-user ./sandbox/docker -short -run '^TestConformanceOrdinaryUser$' "$@" || bad=1
		exit "${bad:-0}"
	} &
	pids+=($!)
	# The whole suite of engines on another machine is left to by hand: -run '^TestElsewhere$'.
	special='copy|canonical|refused|hidden|half|cut|stream'
	{
		lane podman-rootless ./sandbox/podman -short -run '^TestConformanceRootless$' "$@" || bad=1
		lane podman-elsewhere ./sandbox/podman -short -run "^Test(Cases|Forwarded|Asked)?Elsewhere\$/^($special|access|revoke)\$" "$@" || bad=1
		exit "${bad:-0}"
	} &
	pids+=($!)
	{
		lane podman-5 ./sandbox/podman -short -run '^TestConformanceFive$' "$@" || bad=1
		lane podman-life ./sandbox/podman -skip '^TestConformance|Elsewhere$' "$@" || bad=1
		exit "${bad:-0}"
	} &
	pids+=($!)
	{
		lane ssh ./sandbox/ssh -short "$@" || bad=1
		lane docker-elsewhere ./sandbox/docker -short -run "^Test(Cases|Forwarded|Asked)?Elsewhere\$/^($special|streams|revoke|crash)\$" "$@" || bad=1
		exit "${bad:-0}"
	} &
	pids+=($!)
	for pid in "${pids[@]}"; do wait "$pid" || status=1; done
	exit "$status"
	;;
integration)
	exec go test -count=1 -timeout 15m "$@" ./integration/...
	;;
*) die "usage: scripts/gotest.sh short|race|full|containers|integration [go test flags]" ;;
esac
