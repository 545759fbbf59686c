#!/usr/bin/env bash
# Formats the Go files.
#
#   scripts/format.sh           writes them
#   scripts/format.sh --check   lists those that are not formatted, and fails
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
need_go

# The tree may belong to another user than the one who builds. A file that was removed and not yet
# committed is still listed.
mapfile -d '' -t files < <(git -c safe.directory='*' ls-files -z --cached --others --exclude-standard --deduplicate '*.go')
present=()
for file in "${files[@]}"; do
	[ ! -e "$file" ] || present+=("$file")
done
[ ${#present[@]} -gt 0 ] || die "git lists no Go file here"

if [ "${1:-}" != --check ]; then
	gofmt -l -w "${present[@]}"
	exit
fi
unformatted=$(gofmt -l "${present[@]}")
if [ -n "$unformatted" ]; then
	printf 'not formatted, run make fmt:\n%s\n' "$unformatted"
	exit 1
fi
