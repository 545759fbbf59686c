#!/usr/bin/env bash
# Builds the programs.
#
#   scripts/build.sh           bin/berth and bin/berth-guest for this machine
#   scripts/build.sh release   bin/release/berth-linux-{amd64,arm64}, each one file that carries
#                              the helper for both architectures, and their SHA256SUMS
#
# VERSION=... overrides the version, which otherwise comes from git.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

module=$(sed -n 's/^module //p' go.mod)

# version prints v1.2.3 on a tag, v1.2.3-4-gabcdef after it, devel+abcdef without any tag; with
# .dirty appended when files were changed. The helper and the program compare it when they meet.
version() {
	local v
	# The tree may belong to another user than the one who builds, as in many CI systems.
	if v=$(git -c safe.directory='*' describe --tags --match 'v[0-9]*' --dirty=.dirty 2>/dev/null); then
		echo "$v"
	elif v=$(git -c safe.directory='*' describe --always --abbrev=12 --dirty=.dirty 2>/dev/null); then
		echo "devel+$v"
	else
		echo devel
	fi
}
VERSION=${VERSION:-$(version)}

# build OUTPUT PACKAGE [FLAG...] links a static program without local paths or symbol tables.
build() {
	local output=$1 package=$2
	shift 2
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X $module/internal/version.stamped=$VERSION" \
		"$@" -o "$output" "$package"
}

case ${1:-} in
'')
	build bin/berth ./cmd/berth
	build bin/berth-guest ./cmd/berth-guest
	echo "built bin/berth and bin/berth-guest, version $VERSION"
	;;
release)
	embedded=internal/helperbin/embedded
	rm -f "$embedded"/berth-guest-*
	for arch in amd64 arm64; do
		helper=berth-guest-linux-$arch
		GOOS=linux GOARCH=$arch build "$embedded/$helper" ./cmd/berth-guest
		sha256sum "$embedded/$helper" | cut -d' ' -f1 >"$embedded/$helper.sha256"
	done
	mkdir -p bin/release
	for arch in amd64 arm64; do
		GOOS=linux GOARCH=$arch build "bin/release/berth-linux-$arch" ./cmd/berth -tags berth_embed
	done
	(cd bin/release && sha256sum berth-linux-* >SHA256SUMS)
	echo "built bin/release/berth-linux-amd64 and -arm64, version $VERSION"
	;;
*) die "usage: scripts/build.sh [release]" ;;
esac
