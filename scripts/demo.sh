#!/usr/bin/env bash
# The main job on the embedded default: an agent-style task in a bubblewrap sandbox.
# Everything lives in one temporary directory and is gone at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
BERTH="$PWD/bin/berth"
DEMO=$(mktemp -d /tmp/berth-demo-XXXXXX)
export BERTH_STATE_DIR="$DEMO/state" BERTH_RUNTIME_DIR="$DEMO/run" XDG_CONFIG_HOME="$DEMO/config"
unset BERTH_BACKEND
WS="$DEMO/ws"
ROWS=()

finish() {
  local code=$?
  (cd / && "$BERTH" sandbox ls 2>/dev/null | awk 'NR>1{print $1}' | xargs -r "$BERTH" sandbox rm) || true
  rm -rf "$DEMO"
  [ "$code" = 0 ] || echo "demo: FAILED" >&2
  exit "$code"
}
trap finish EXIT

say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }
show() { printf '  $ %s\n' "$*"; }
now() { date +%s%N; }

# step NAME COMMAND...: runs it, shows it, notes the time.
step() {
  local name=$1 begin end
  shift
  begin=$(now)
  "$@"
  end=$(now)
  ROWS+=("$(printf '%-46s %9.1f ms' "$name" "$(( (end - begin) / 1000 ))e-3")")
}
# must_fail WHAT COMMAND...: the command has to fail; its reason is shown.
must_fail() {
  local what=$1 out
  shift
  if out=$("$@" 2>&1); then
    echo "demo: $what was possible: $out" >&2
    exit 1
  fi
  printf '  %-34s refused: %s\n' "$what" "$(printf '%s' "${out:-it is not set}" | head -1)"
}
berth() { "$BERTH" "$@"; }

say "1. A small git repository as workspace"
mkdir -p "$WS" && cd "$WS"
git init -q . && git config user.email agent@example.org && git config user.name agent
printf '# wordcount\nCounts words.\n' > README.md
git add . && git commit -q -m 'a readme'
show "git log --oneline"; git log --oneline | sed 's/^/  /'

say "2. The agent writes a program through the file bridge"
write_program() {
  berth fs put src/wordcount.c <<'C'
#include <ctype.h>
#include <stdio.h>

int main(void) {
    int c, inside = 0;
    long words = 0;
    while ((c = getchar()) != EOF) {
        if (isspace(c)) inside = 0;
        else if (!inside) inside = 1, words++;
    }
    printf("%ld\n", words);
    return 0;
}
C
  printf 'wordcount: src/wordcount.c\n\tcc -O2 -Wall -Werror -o $@ $<\ntest: wordcount\n\ttest "$$(printf "one two  three" | ./wordcount)" = 3\n' | berth fs put Makefile
}
step "start the sandbox, write two files" write_program
show "berth fs tree --skip .git"; berth fs tree --skip .git | sed 's/^/  /'

say "3. It builds and tests it in the sandbox"
show "berth exec -- make test"
step "build and test" berth exec -- make -s test
show "echo 'a b c d' | berth exec -i -- ./wordcount"
printf 'a b c d' | berth exec -i -- ./wordcount | sed 's/^/  /'
show "berth exec -- git status --short"
berth exec -- git status --short | sed 's/^/  /'
step "one more command in the warm sandbox" berth exec -- true
step "one file operation" berth fs stat README.md > /dev/null

say "4. Network and host secrets are out of reach"
mkdir -p "$DEMO/home/.ssh" && echo 'host secret' > "$DEMO/home/.ssh/id_demo"
export DEMO_TOKEN=host-secret
must_fail "a host on the internet" berth exec -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
printf '  %-34s %s\n' "network devices inside" "$(berth exec -- sh -c 'sed -n "s/^ *\([a-z0-9]*\):.*/\1/p" /proc/net/dev | tr "\n" " "')"
must_fail "a key in a home directory" berth exec -- cat "$DEMO/home/.ssh/id_demo"
must_fail "a variable of the caller" berth exec -- printenv DEMO_TOKEN
must_fail "writing to the system" berth exec -- touch /usr/bin/evil
ln -s /etc/shadow "$WS/leak"
must_fail "a planted link, through the bridge" berth fs cat leak
rm "$WS/leak"
printf '  %-34s %s\n' "processes it can see" "$(berth exec -- sh -c 'ls -d /proc/[0-9]* | wc -l')"

say "5. A process tree that tries to escape"
berth fs put escape.sh --mode 0755 <<'S'
#!/bin/sh
# detached, in another session, without environment, deaf to SIGTERM
setsid sh -c 'trap "" TERM HUP; sleep 31415926 & sleep 31415926' &
env -i sh -c '(trap "" TERM; sleep 31415926 & exec sleep 31415926) &' &
(sh -c '(sleep 31415926 &) ; exec sleep 31415926' &)
echo started
exec sleep 31415926
S
count() { { grep -lzs 3141592[6] /proc/[0-9]*/cmdline || true; } | wc -l; }
ID=$(berth exec --background -- ./escape.sh)
until [ "$(berth logs "$ID")" = started ] && [ "$(count)" -ge 6 ]; do :; done
printf '  %-34s %s\n' "processes of the tree" "$(count)"
show "berth kill $ID"
step "end the tree (2 s grace: it is deaf to TERM)" berth kill "$ID" > "$DEMO/killed"
sed 's/^/  /' "$DEMO/killed"
LEFT=$(count)
printf '  %-34s %s\n' "processes left" "$LEFT"
[ "$LEFT" = 0 ]

say "6. The owner process is killed; nothing stays, the next call starts anew"
berth exec --background -- sleep 31415927 > /dev/null
OWNER=$(berth sandbox inspect | awk '$1=="owner"{for(i=2;i<=NF;i++) if ($i ~ /^[0-9]+,?$/) {sub(",","",$i); print $i; exit}}')
kill -9 "$OWNER"
while grep -lzs 3141592[7] /proc/[0-9]*/cmdline > /dev/null; do :; done
echo "  owner $OWNER killed, its command is gone"
step "start again after the crash" berth exec -- ./wordcount < /dev/null > /dev/null

say "7. The same in a container, where an engine answers: even of an empty image"
mkdir -p "$DEMO/empty/etc" && echo 'this is all there is' > "$DEMO/empty/etc/motd"
IMAGE=localhost/berth-demo:$$
for engine in docker podman; do
  if ! out=$("$BERTH" image import --backend "$engine" "$DEMO/empty" "$IMAGE" 2>&1); then
    printf '  %-34s left out: %s\n' "$engine" "$(printf '%s' "$out" | head -1)"
    continue
  fi
  if ! out=$("$BERTH" sandbox recreate --backend "$engine" --image "$IMAGE" 2>&1); then
    printf '  %-34s left out: %s\n' "$engine" "$(printf '%s' "$out" | head -1)"
    continue
  fi
  berth sandbox rm --backend "$engine" --image "$IMAGE"
  show "berth exec --backend $engine --image $IMAGE -- /run/berth/berth-guest version"
  step "$engine: make a container, run a command" berth exec --backend "$engine" --image "$IMAGE" -- /run/berth/berth-guest version > "$DEMO/said"
  sed 's/^/  /' "$DEMO/said"
  berth fs cat --backend "$engine" --image "$IMAGE" /etc/motd | sed 's/^/  /'
  step "$engine: one more command" berth exec --backend "$engine" --image "$IMAGE" -- /run/berth/berth-guest version > /dev/null
  step "$engine: one file operation" berth fs stat --backend "$engine" --image "$IMAGE" README.md > /dev/null
  berth sandbox rm --backend "$engine" --image "$IMAGE"
  "$engine" rmi "$IMAGE" > /dev/null 2>&1 || true
done

say "What it took"
printf '  %s\n' "${ROWS[@]}"
echo
echo "  Try it in a directory of yours:  bin/berth exec -it -- bash"
