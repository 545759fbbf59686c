package backendtest

import (
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func declaredChecks() []check {
	return []check{
		{name: "features", rows: []string{"SBX-06"}, run: declaredFeatures},
		{name: "info", rows: []string{"C057"}, run: declaredInfo},
		{name: "diagnosis", run: declaredDiagnosis},
	}
}

// declaredFeatures compares what is declared with what is there.
func declaredFeatures(k *kit) {
	f := k.features
	if name := k.backend.Name(); name == "" || strings.ToLower(name) != name {
		k.Errorf("the name %q is no lower-case word", name)
	}
	if !slices.Contains(f.Networks, "none") && f.Confined {
		k.Errorf("a confined backend without network none: %q", f.Networks)
	}
	if !slices.Contains(f.Access, sandbox.AccessReadWrite) {
		k.Errorf("no read-write workspace: %q", f.Access)
	}
	x := k.ensure()
	if _, is := x.rec.Sandbox.(sandbox.ProcessCleaner); is != f.ProcessCleanup {
		k.Errorf("ProcessCleanup is declared as %t, the sandbox is a ProcessCleaner: %t", f.ProcessCleanup, is)
	}
}

// declaredInfo looks at what a sandbox says about itself.
func declaredInfo(k *kit) {
	spec := k.spec(func(s *sandbox.Spec) { s.Config.Env = map[string]string{"TOKEN": secretValue} })
	x, err := k.tryEnsure(k.backend, spec)
	k.must(err)
	info := x.Info()
	if !info.ID.Valid() || info.ID.Backend() != k.backend.Name() || info.Backend != k.backend.Name() {
		k.Errorf("id %q of backend %q", info.ID, info.Backend)
	}
	if info.State != sandbox.StateRunning || info.Scope != spec.Scope || info.Session != spec.Session || info.Workspace != k.ws {
		k.Errorf("info %+v", info)
	}
	if info.Workdir != x.root {
		k.Errorf("working directory %q, the workspace is at %q", info.Workdir, x.root)
	}
	if info.Created.IsZero() || info.LastUsed.Before(info.Created) {
		k.Errorf("created %s, used %s", info.Created, info.LastUsed)
	}
	if !info.Owner.Alive() {
		k.Errorf("owner %v, and this process holds it", info.Owner)
	}
	if len(info.ConfigHash) != 64 {
		k.Errorf("hash %q", info.ConfigHash)
	}
	if info.Config.Env["TOKEN"] == secretValue {
		k.Error("the value of an environment variable is part of the description")
	}
	m, _ := info.Mounts.Workspace()
	if m.ReadOnly {
		k.Errorf("mount %+v of a read-write workspace", m)
	}
	if k.features.Confined && m.Path != sandbox.WorkspacePath {
		k.Errorf("the workspace is at %q", m.Path)
	}
	// What is handed out is a copy.
	if len(info.Mounts) > 0 {
		info.Mounts[0].Path = "/changed"
		if x.Info().Mounts[0].Path == "/changed" {
			k.Error("the caller can change the sandbox's own mount table")
		}
	}
	select {
	case <-x.Done():
		k.Errorf("done while it runs: %v", x.Err())
	default:
	}
	if err := x.Err(); err != nil {
		k.Errorf("Err = %v while it runs", err)
	}
}

// declaredDiagnosis looks whether the backend works, which it must: everything else runs on it.
func declaredDiagnosis(k *kit) {
	d := k.backend.Check(k.ctx)
	if !d.Usable || d.Backend != k.backend.Name() || len(d.Checks) == 0 {
		k.Errorf("diagnosis %+v", d)
	}
	for _, c := range d.Checks {
		switch c.Result {
		case sandbox.CheckOK:
		case sandbox.CheckWarn:
			if c.Detail == "" {
				k.Errorf("warning without a detail: %+v", c)
			}
		default:
			k.Errorf("usable with %+v", c)
		}
	}
	infos, err := k.backend.List(k.ctx)
	if err != nil || len(infos) != 0 {
		k.Errorf("looking left something: %+v, %v", infos, err)
	}
}
