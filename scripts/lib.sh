# Sourced by the other scripts: strict mode, the repository's root, plain speech, and Go.
# shellcheck shell=bash
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$ROOT"

say() { printf '\n== %s\n' "$*"; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Some CI systems start jobs without HOME; Go's caches need one.
if [ -z "${HOME:-}" ]; then
	HOME=$(getent passwd "$(id -u)" | cut -d: -f6) || HOME=
	[ -n "$HOME" ] || HOME=$ROOT/.cache/home
	export HOME
fi

# The version is stamped by scripts/build.sh. Go's own stamping fails in a clone that belongs to
# another user.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

# need_go finds Go on PATH or where its installer and Debian put it.
need_go() {
	local dir
	command -v go >/dev/null && return
	for dir in /usr/local/go/bin /usr/lib/go/bin /usr/lib/go-*/bin "$HOME"/go/bin "$HOME"/sdk/go*/bin; do
		if [ -x "$dir/go" ]; then
			PATH=$PATH:$dir
			return
		fi
	done
	die "Go $(sed -n 's/^go //p' go.mod) or newer is needed and no go program was found; see https://go.dev/dl/"
}

# seconds_since START prints a duration like 3m07s.
seconds_since() {
	local s=$((SECONDS - $1))
	printf '%dm%02ds' $((s / 60)) $((s % 60))
}
