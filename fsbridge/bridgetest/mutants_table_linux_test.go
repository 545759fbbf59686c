package bridgetest_test

import (
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/local"
)

// mutants lists the faults.
func mutants() []mutant {
	plain := func(name string, wrap func(base) fsbridge.Bridge, found ...string) mutant {
		return mutant{name: name, found: found, wrap: func(b *local.Bridge, ws string) fsbridge.Bridge {
			return wrap(base{b, ws})
		}}
	}
	list := []mutant{
		{name: "none"},
		{
			// No fault either: the whole machine is a system mount, OUT included.
			name: "system-mount", mounts: func(t fsbridge.MountTable) fsbridge.MountTable {
				return append(t, fsbridge.Mount{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true})
			},
			passes: []string{
				"attack/links-out", "attack/dots-out", "attack/absolute", "attack/sibling-prefix", "attack/symlink-target",
				"links/read-through", "links/write-through", "pinned/alias", "pinned/other-mount", "mounts/table",
				"mounts/system", "mounts/bind", "mounts/bind-boundary", "copy/links", "glob/links", "race/reads", "race/writes",
			},
		},
		plain("reads-anything", func(b base) fsbridge.Bridge { return naive{b} },
			"attack/links-out", "attack/dots-out", "attack/absolute", "attack/sibling-prefix", "race/swapped-parent"),
		plain("reads-by-prefix", func(b base) fsbridge.Bridge { return lexical{naive{b}} }, "attack/links-out", "attack/sibling-prefix"),
		plain("checks-then-reads", func(b base) fsbridge.Bridge { return checked{naive{b}} }, "race/reads"),
		plain("checks-then-writes", func(b base) fsbridge.Bridge { return checkedWrites{b} }, "race/writes"),
		plain("cuts-at-the-limit", func(b base) fsbridge.Bridge { return cuts{b} }, "limits/read"),
		plain("reads-from-a-cache", func(b base) fsbridge.Bridge {
			return caches{b, &sync.Mutex{}, map[string][]byte{}}
		}, "core/read"),
		plain("reads-text", func(b base) fsbridge.Bridge { return textual{b} }, "bytes/content", "bytes/read-back-unchanged"),
		plain("bare-errors", func(b base) fsbridge.Bridge { return bare{b} }, "core/missing"),
		plain("outside-is-missing", func(b base) fsbridge.Bridge { return missing{b} }, "attack/links-out", "attack/dots-out"),
		plain("ignores-contexts", func(b base) fsbridge.Bridge { return deaf{b} }, "ctx/cancelled", "ctx/deadline"),
		plain("resolves-afterwards", func(b base) fsbridge.Bridge { return twoSteps{b} }, "pinned/race-link"),
		plain("reports-the-asked-path", func(b base) fsbridge.Bridge { return asked{b} }, "pinned/alias", "pinned/race-link"),
		plain("guesses-relative-paths", func(b base) fsbridge.Bridge { return guesses{b} }, "pinned/other-mount"),
		plain("strips-deleted", func(b base) fsbridge.Bridge { return remarks{b} }, "pinned/odd-names"),
		plain("opens-fifos", func(b base) fsbridge.Bridge { return blocks{b} }, "special/fifo"),
		plain("ends-silently", func(b base) fsbridge.Bridge { return silent{b} }, "stream/read-cancelled"),
		plain("range-off-by-one", func(b base) fsbridge.Bridge { return shifted{b} }, "range/table"),
		plain("splits-names", func(b base) fsbridge.Bridge { return splits{b} }, "names/list"),
		plain("utf8-names", func(b base) fsbridge.Bridge { return utf8Only{b} }, "names/list"),
		plain("unsorted", func(b base) fsbridge.Bridge { return unsorted{b} }, "list/entries", "list/10000-sorted"),
		plain("partial-listing", func(b base) fsbridge.Bridge { return partial{b} }, "list/10000-sorted"),
		plain("walks-links", func(b base) fsbridge.Bridge { return wanders{b} }, "walk/links"),
		plain("upper-case-digest", func(b base) fsbridge.Bridge { return shouts{b} }, "hash/digest"),
		plain("globs-through-links", func(b base) fsbridge.Bridge { return descends{b} }, "glob/links"),
		plain("watch-error", func(b base) fsbridge.Bridge { return fails{b} }, "watch/close"),
		plain("declares-less", func(b base) fsbridge.Bridge { return fewer{b} }, "declared/as-expected"),
		plain("shares-its-table", func(b base) fsbridge.Bridge { return exposes{b, b.Mounts()} }, "mounts/table"),
		plain("writes-in-place", func(b base) fsbridge.Bridge { return inPlace{b} }, "atomic/readers-see-whole", "diskfull/replace"),
		plain("replaces-links", func(b base) fsbridge.Bridge { return replacesLinks{b} }, "links/write-through"),
		plain("writes-out", func(b base) fsbridge.Bridge { return escapes{b} }, "attack/links-out", "attack/dots-out"),
		plain("private-files", func(b base) fsbridge.Bridge { return private{b} }, "mode/umask-022", "mode/kept-on-replace"),
		plain("forgets-modes", func(b base) fsbridge.Bridge { return forgets{b} }, "mode/kept-on-replace", "mode/umask-077"),
		plain("takes-ownership", func(b base) fsbridge.Bridge { return seizes{b} }, "mode/owner-kept"),
		plain("decimal-modes", func(b base) fsbridge.Bridge { return decimal{b} }, "mode/chmod"),
		plain("leaves-temporaries", func(b base) fsbridge.Bridge { return litters{b} }, "stream/write-reader-fails", "stream/write-size"),
		plain("keeps-half", func(b base) fsbridge.Bridge { return keeps{b} }, "stream/write-reader-fails"),
		plain("no-preconditions", func(b base) fsbridge.Bridge { return unconditional{b} }, "if/hash", "if/absent", "if/counter", "if/two-creators"),
		plain("precondition-too-early", func(b base) fsbridge.Bridge { return tooEarly{b} }, "if/counter"),
		plain("create-overwrites", func(b base) fsbridge.Bridge { return overwrites{b} }, "create/taken", "create/one-of-many"),
		plain("create-looks-first", func(b base) fsbridge.Bridge { return looksFirst{b} }, "create/one-of-many"),
		plain("create-in-steps", func(b base) fsbridge.Bridge { return inSteps{b} }, "create/appears-whole"),
		plain("append-rewrites", func(b base) fsbridge.Bridge { return rewrites{b} }, "atomic/append-concurrent"),
		plain("removes-through-links", func(b base) fsbridge.Bridge { return through{b} }, "attack/remove-link-not-target"),
		plain("dash-is-an-option", func(b base) fsbridge.Bridge { return dashes{b} }, "names/remove"),
		plain("rename-replaces", func(b base) fsbridge.Bridge { return replaces{b} }, "rename/no-replace", "rename/no-replace-one-of-many"),
		plain("rename-by-name", func(b base) fsbridge.Bridge { return copiesThenRemoves{b} }, "rename/cross-device-race", "rename/file"),
		plain("links-anywhere", func(b base) fsbridge.Bridge { return anyTarget{b} }, "attack/symlink-target"),
		plain("copies-link-targets", func(b base) fsbridge.Bridge { return materialises{b} }, "copy/links"),
		{
			name: "leaks-goroutines", found: []string{"core/stat-dir"}, says: "found unexpected goroutines",
			wrap: func(b *local.Bridge, ws string) fsbridge.Bridge { return leaks{base{b, ws}} },
		},
		{
			name: "touches-out", found: []string{"core/stat-dir"}, says: "OUT, which lies outside every mount",
			wrap: func(b *local.Bridge, ws string) fsbridge.Bridge { return touches{base{b, ws}} },
		},
		{
			name: "no-guard", options: func(o *bridgetest.Options) { o.Guard = nil },
			found: []string{"guard/asked-every-time", "guard/refused-when-gone"},
		},
		{
			name: "never-read-only", options: func(o *bridgetest.Options) { o.ReadOnly = false },
			found: []string{"readonly/workspace", "readonly/told"},
		},
		{
			name: "ignores-the-limit", options: func(o *bridgetest.Options) { o.ReadLimit = 0 },
			found: []string{"limits/read", "limits/range"},
		},
		{
			name: "revocation-without-effect", environment: func(e *bridgetest.Environment) { e.Revoke = func() {} },
			found: []string{"guard/revoked"},
		},
	}
	return append(list, transportMutants()...)
}
