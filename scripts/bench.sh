#!/usr/bin/env bash
# Measures, and writes docs/benchmarks.md and bin/bench.json. Run it on a quiet machine; it takes
# about fifteen minutes and, for a while, 5 GB of disk for temporary files.
#
#   BENCH=regexp              only these measures, printed; nothing is written
#   BENCH_BACKEND=NAME[,...]  only these of bubblewrap, docker, podman and ssh, likewise
#   BENCH_SHORT=1             few samples and small sizes, printed: shows that it works
#   BENCH_ENGINES=0           no container engines, and nothing installed for them
#
# Where it can, as root on a Debian-like system, it installs and starts a Docker engine and a Podman
# service of its own, to measure and to compare with. The ssh backend is measured with an OpenSSH
# server of this run, and needs sshd, ssh, scp and rsync. What is missing is said in the report.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/scripts/engines.sh"
need_go

trap engines_stop EXIT
scripts/setup.sh demo >&2
engines_start bubblewrap >&2

backends=${BENCH_BACKEND:-bubblewrap,docker,podman,ssh}
flags=(-bin bin -backend "$backends")
engines=()
case ,$backends, in *,bubblewrap,* | *,docker,*) engines+=(docker) ;; esac
case ,$backends, in *,podman,*) engines+=(podman) ;; esac
if [ "${BENCH_ENGINES:-1}" != 0 ] && [ ${#engines[@]} -gt 0 ]; then
	scripts/setup.sh bench >&2 || echo "going on without what is missing" >&2
	engines_start "${engines[@]}" >&2
	flags+=(-docker "${BERTH_TEST_DOCKER:-}" -podman "${BERTH_TEST_PODMAN:-}" -image "$ENGINES_IMAGE")
fi
if [ -n "${BENCH:-}${BENCH_BACKEND:-}${BENCH_SHORT:-}" ]; then
	flags+=(-only "${BENCH:-.}" ${BENCH_SHORT:+-short})
else
	flags+=(-out docs/benchmarks.md -json bin/bench.json)
fi
scripts/build.sh >&2
go run ./integration/benchreport "${flags[@]}"
