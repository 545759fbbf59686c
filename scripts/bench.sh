#!/usr/bin/env bash
# Measures, and writes docs/benchmarks.md and bin/bench.json. Run it on a quiet machine.
#
#   BENCH=regexp      only these measures, printed; nothing is written
#   BENCH_SHORT=1     few samples and small sizes, printed: shows that it works
#   BENCH_DOCKER=0    no comparison with a Docker engine, and nothing installed for one
#
# Where it can, as root on a Debian-like system, it installs and starts a Docker engine of its own
# to compare with. Without one the rows say so.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

trap engines_stop EXIT
scripts/setup.sh demo >&2
engines_start bubblewrap >&2

flags=(-bin bin)
if [ "${BENCH_DOCKER:-1}" != 0 ]; then
	scripts/setup.sh bench >&2 || echo "going on without what is missing" >&2
	engines_start docker >&2
	if [ -n "${BERTH_TEST_DOCKER:-}" ]; then
		flags+=(-docker "${BERTH_TEST_DOCKER#unix://}" -docker-image "$ENGINES_IMAGE")
	fi
fi
if [ -n "${BENCH:-}${BENCH_SHORT:-}" ]; then
	flags+=(-only "${BENCH:-.}" ${BENCH_SHORT:+-short})
else
	flags+=(-out docs/benchmarks.md -json bin/bench.json)
fi
scripts/build.sh >&2
go run ./integration/benchreport "${flags[@]}"
