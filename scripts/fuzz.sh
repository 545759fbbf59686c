#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (20s), one after the other. FUZZ=regexp selects by name.
# A failing input is written below the package's testdata/fuzz: commit it with the repair.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

count=0
while IFS=: read -r file name; do
	[[ $name =~ ${FUZZ:-.} ]] || continue
	count=$((count + 1))
	say "$name in ${file%/*}"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-20s}" "./${file%/*}" </dev/null
done < <(grep -rEo --include='*_test.go' --exclude-dir=.cache '^func Fuzz[A-Za-z0-9_]+' . | sed 's|^\./||; s|func ||' | sort)

[ $count -gt 0 ] || die "no fuzz target${FUZZ:+ matches $FUZZ}"
echo
echo "$count fuzz targets, no failure"
