#!/usr/bin/env bash
# Runs golangci-lint with .golangci.yml and reports what is wrong. Arguments go to its run command.
#
# The linter is built once from source, at the version pinned here, into .cache/bin: with this
# machine's Go, so that it understands the same language as the compiler.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

golangci_version=v2.15.0

program=$ROOT/.cache/bin/golangci-lint-$golangci_version-$(go env GOVERSION)
export GOLANGCI_LINT_CACHE=$ROOT/.cache/golangci-lint

if [ ! -x "$program" ]; then
	echo "building golangci-lint $golangci_version, once (about two minutes)"
	mkdir -p "$ROOT/.cache/bin"
	build=$(mktemp -d "$ROOT/.cache/build.XXXXXX")
	trap 'rm -rf "$build"' EXIT
	GOBIN=$build GOFLAGS=-buildvcs=false go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci_version"
	mv "$build/golangci-lint" "$program"
fi

"$program" run "$@"
