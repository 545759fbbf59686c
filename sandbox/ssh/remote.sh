# What berth asks of a host's /bin/sh, whatever the login shell is. It is sent on standard
# input, as one function that is read completely before it runs, and called by the line
# after it, which ends the shell. Every answer is a line that begins with the mark of this call, so that what
# others print is no part of it. POSIX only; no program is needed beyond those of POSIX and,
# to verify the helper, one that computes SHA-256.

berth() {
	mark=$1 what=$2
	shift 2
	nl='
'
	LC_ALL=C
	export LC_ALL
	login_path=$PATH # a start file may have left it without the usual places
	PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
	mask=$(umask)
	umask 077

	say() { printf '%s%s %s\n' 'berth:' "$mark" "$*"; }

	# sum FILE prints the SHA-256 of a file, or nothing.
	sum() {
		if command -v sha256sum >/dev/null 2>&1; then
			sha256sum <"$1" 2>/dev/null
		elif command -v shasum >/dev/null 2>&1; then
			shasum -a 256 <"$1" 2>/dev/null
		elif command -v openssl >/dev/null 2>&1; then
			openssl dgst -sha256 -r <"$1" 2>/dev/null
		fi | (read -r hex rest && printf '%s' "$hex")
	}

	# private DIR makes a directory that only this user can use, and says whether it is one.
	private() {
		[ -d "$1" ] || mkdir -p "$1" 2>/dev/null || return 1
		[ ! -L "$1" ] && [ -O "$1" ] && chmod 700 "$1" 2>/dev/null && [ -w "$1" ]
	}

	# caches prints the directories that may hold the helper, one per line.
	caches() {
		[ -z "$XDG_CACHE_HOME" ] || printf '%s\n' "$XDG_CACHE_HOME/workberth"
		[ -z "$HOME" ] || printf '%s\n' "$HOME/.cache/workberth"
		uid=$(id -u)
		printf '%s\n' "/var/tmp/workberth-$uid" "/tmp/workberth-$uid" "/dev/shm/workberth-$uid"
	}

	# clear NAME makes room for a file: what was moved to a directory would land in it.
	clear() { [ ! -d "$1" ] || rm -rf "$1" 2>/dev/null; }

	# place DIR SUM SIZE writes the helper from standard input and tries whether it runs.
	place() {
		if ! private "$1"; then
			say unusable "cannot be made, written or owned"
			return
		fi
		tmp=$1/.new-$$-$mark
		say send
		cat >"$tmp" 2>/dev/null
		have=$(sum "$tmp")
		size=$(wc -c <"$tmp")
		if [ "$((size))" -ne "$3" ] || [ "${have:-$2}" != "$2" ]; then
			say unusable "the helper did not arrive whole: $((size)) bytes of $3"
		elif ! chmod 700 "$tmp"; then
			say unusable "its files cannot be made executable"
		elif ! "$tmp" version >/dev/null 2>&1; then
			say unusable "programs in it do not run"
		elif clear "$1/berth-guest-$2" && mv -f "$tmp" "$1/berth-guest-$2"; then
			# What nobody has placed for a month, and what was never placed whole.
			find "$1" -name 'berth-guest-*' ! -name "berth-guest-$2" -mtime +30 -exec rm -f {} + 2>/dev/null
			find "$1" -name '.new-*' -mtime +0 -exec rm -f {} + 2>/dev/null
			say placed "$1/berth-guest-$2"
			return
		else
			say unusable "the helper cannot be given its name"
		fi
		rm -f "$tmp"
	}

	# found SUM prints where a whole helper is.
	found() {
		caches | while IFS= read -r dir; do
			file=$dir/berth-guest-$1
			if [ -f "$file" ] && [ ! -L "$file" ] && private "$dir" && [ -O "$file" ] && [ -x "$file" ] &&
				[ "$(sum "$file")" = "$1" ]; then
				printf '%s' "$file"
				break
			fi
		done
	}

	# at PATH turns a path that begins with /~ into one below the home directory.
	at() {
		case $1 in
		'/~') printf '%s' "$HOME" ;;
		'/~/'*) printf '%s/%s' "${HOME%/}" "${1#'/~/'}" ;;
		*) printf '%s' "$1" ;;
		esac
	}

	case $what in
	place)
		place "$@"
		return
		;;
	esac

	# The sums of the helpers for amd64 and arm64; "-" where there is none to be had.
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 want=$1 ;;
	aarch64 | arm64) arch=arm64 want=$2 ;;
	*) arch=$(uname -m) want=- ;;
	esac
	shift 2
	if [ "$(uname -s)" != Linux ] || [ "$want" = - ]; then
		say alien "$(uname -s)" "$arch"
		return
	fi
	helper=$(found "$want")
	if [ -z "$helper" ]; then
		caches | while IFS= read -r dir; do say cache "$dir"; done
		say missing "$arch"
		return
	fi
	say arch "$arch"

	case $what in
	serve)
		ws=$(at "$2") tag=$1 home=$3
		if [ "$home" = make ] && [ ! -e "$ws" ]; then
			mkdir -p "$ws" 2>/dev/null
		fi
		if [ ! -d "$ws" ]; then
			say absent "$ws"
			return
		fi
		ws=$(cd "$ws" 2>/dev/null && pwd -P && printf .)
		ws=${ws%??}
		case $ws in
		'' | *"$nl"*)
			say closed "$(at "$2")"
			return
			;;
		esac
		for name in HOME PATH USER LOGNAME SHELL LANG TZ TMPDIR SSH_CONNECTION; do
			value=
			eval "value=\$$name"
			[ "$name" != PATH ] || value=$login_path
			case $value in
			'' | *"$nl"*) ;;
			*) say env "$name=$value" ;;
			esac
		done
		umask "$mask"
		cd / || return
		say workspace "$ws"
		say ready
		exec env -i "$helper" serve "--tag=$tag" "--mount=workspace:rw:$ws"
		;;
	end)
		say ready
		exec "$helper" end "$1"
		;;
	state)
		ws=$(at "$1")
		if [ -d "$ws" ]; then
			say there "$ws"
		elif [ -e "$ws" ] || [ -L "$ws" ]; then
			say other "$ws"
		else
			say absent "$ws"
		fi
		;;
	unpack)
		umask "$mask"
		say ready
		exec "$helper" unpack "$(at "$1")"
		;;
	aside)
		ws=$(at "$1")
		if [ -e "$ws" ] || [ -L "$ws" ]; then
			old=$ws.before-$2
			if [ -e "$old" ] || [ -L "$old" ] || ! mv "$ws" "$old"; then
				say stuck "$ws"
				return
			fi
			say moved "$old"
		else
			say absent "$ws"
		fi
		;;
	esac
}
