package gitenv

// Harden returns settings that keep a host git from running the programs a repository's own configuration names. Make
// a fragment of them with [Fragment] and append it last. The host's own settings, a credential helper say, go behind.
//
// A filter, diff, merge or pager setting has a name chosen by the repository, so the keys the repository sets must be
// known: pass the output of `git config -z --list --name-only` split at NUL, which runs nothing and follows includes.
// Keys that run no program are ignored. The error is a *[PairError] for a key that git would refuse.
//
// What the settings do: hooks, file system monitor, pagers, editors, credential helpers, signing programs and
// automatic maintenance are off; ssh is the one on PATH; the git:// and ext:: transports are refused; filters pass
// content through; a merge driver reports a conflict. Git has no setting for "no external diff", so a diff for which
// the repository wants one ends with an error, unless it is run with --no-ext-diff.
//
// What they cannot do, and why git belongs in the sandbox for any directory the sandbox can write: a driver that is
// added between the listing and the command runs; a submodule's own configuration is not listed (add
// --ignore-submodules=all to status and diff); environment variables such as GIT_SSH_COMMAND win over settings;
// commands that exist to start a program (aliases, difftool, mergetool, bisect run, submodule update) still do.
func Harden(repositoryKeys ...string) ([]Pair, error) {
	pairs := []Pair{
		{Key: "core.fsmonitor", Value: "false"},
		{Key: "core.hooksPath", Value: "/dev/null"},
		{Key: "core.pager", Value: "cat"},
		{Key: "core.editor", Value: "false"},
		{Key: "sequence.editor", Value: "false"},
		{Key: "core.askPass"},
		{Key: "core.sshCommand", Value: "ssh"},
		{Key: "core.alternateRefsCommand", Value: "true"},
		{Key: "credential.helper"},
		{Key: "diff.external"},
		{Key: "interactive.diffFilter", Value: "cat"},
		{Key: "commit.gpgSign", Value: "false"},
		{Key: "tag.gpgSign", Value: "false"},
		{Key: "push.gpgSign", Value: "false"},
		{Key: "log.showSignature", Value: "false"},
		{Key: "merge.verifySignatures", Value: "false"},
		{Key: "gpg.program", Value: "false"},
		{Key: "gpg.openpgp.program", Value: "false"},
		{Key: "gpg.x509.program", Value: "false"},
		{Key: "gpg.ssh.program", Value: "false"},
		{Key: "gpg.ssh.defaultKeyCommand", Value: "false"},
		{Key: "protocol.ext.allow", Value: "never"},
		{Key: "protocol.git.allow", Value: "never"},
		{Key: "init.templateDir"},
		{Key: "gc.auto", Value: "0"},
		{Key: "maintenance.auto", Value: "false"},
		{Key: "submodule.recurse", Value: "false"},
		{Key: "fetch.recurseSubmodules", Value: "false"},
		{Key: "diff.ignoreSubmodules", Value: "all"},
		{Key: "status.submoduleSummary", Value: "false"},
	}
	seen := map[string]bool{}
	for i, key := range repositoryKeys {
		canonical, err := CanonicalKey(key)
		if err != nil {
			return nil, &PairError{Index: i, Err: err}
		}
		for _, p := range neutral(canonical) {
			if !seen[p.Key] {
				seen[p.Key] = true
				pairs = append(pairs, p)
			}
		}
	}
	return pairs, nil
}

// neutral returns what makes a setting with a name chosen by the repository harmless, or nothing if it is.
func neutral(key string) []Pair {
	section, subsection, name, named := splitKey(key)
	if section == "pager" {
		return []Pair{{Key: key, Value: "false"}}
	}
	if !named {
		return nil
	}
	switch section + "." + name {
	case "filter.clean", "filter.smudge", "filter.process":
		// An empty command is no command. A required filter without one would be an error.
		return []Pair{{Key: key}, {Key: section + "." + subsection + ".required", Value: "false"}}
	case "diff.textconv":
		return []Pair{{Key: key, Value: "cat"}}
	case "diff.command":
		return []Pair{{Key: key}}
	case "merge.driver":
		// Not empty: that would succeed and take one side.
		return []Pair{{Key: key, Value: "false"}}
	case "remote.uploadpack":
		return []Pair{{Key: key, Value: "git-upload-pack"}}
	case "remote.receivepack":
		return []Pair{{Key: key, Value: "git-receive-pack"}}
	case "remote.vcs":
		return []Pair{{Key: key}}
	case "submodule.update":
		return []Pair{{Key: key, Value: "checkout"}}
	case "tar.command":
		return []Pair{{Key: key, Value: "false"}}
	case "hook.command", "trailer.command", "trailer.cmd":
		return []Pair{{Key: key, Value: "true"}}
	}
	return nil
}
