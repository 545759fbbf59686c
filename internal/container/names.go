package container

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/workberth/workberth/sandbox"
)

// checkNames refuses paths that cannot be told to an engine: its protocol is text, and would name
// another path in their place.
func checkNames(spec sandbox.Spec) error {
	no := func(field, what, name string) error {
		if utf8.ValidString(name) {
			return nil
		}
		return &sandbox.Problem{
			Field: field, What: fmt.Sprintf("%s %q", what, name), Rule: "the name is not UTF-8, and container engines take no other",
			Remedy: "rename it, or use the backend bubblewrap", Err: sandbox.ErrRefused,
		}
	}
	checks := []error{no("workspace", "workspace", spec.Workspace)}
	for _, b := range spec.Config.Binds {
		checks = append(checks, no("binds", "source", b.Source), no("binds", "target", b.Target))
	}
	for _, t := range spec.Config.Tmpfs {
		checks = append(checks, no("tmpfs", "path", t.Path))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkVolumes refuses an image that would hide a part of what this machine's directories show, or
// have one made in them: the engine gives every container of it a volume there.
func (p *plan) checkVolumes(name string) error {
	for _, place := range p.image.Volumes {
		place = path.Clean("/" + place)
		var above Mount
		covered := false
		for _, m := range p.spec.Mounts {
			covered = covered || m.Target == place
			if strings.HasPrefix(place, m.Target+"/") && len(m.Target) > len(above.Target) {
				above = m
			}
		}
		if covered || above.Source == "" && above.Volume == "" {
			continue
		}
		return &sandbox.Problem{
			Field: "image", What: fmt.Sprintf("image %q", name),
			Rule:   fmt.Sprintf("it declares a volume at %s, which would hide what %s has there", place, cmp.Or(above.Source, above.Target)),
			Remedy: "use an image without that volume", Err: sandbox.ErrRefused,
		}
	}
	return nil
}
