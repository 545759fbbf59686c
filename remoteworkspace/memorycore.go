package remoteworkspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// MemoryRule gives files below a workspace a kind. Patterns are those of
// BootstrapConfig.Patterns and are compared in any letter case; the first rule that
// matches counts.
type MemoryRule struct {
	Pattern string
	Kind    MemoryKind
}

// DefaultMemoryRules are the rules of a workspace without any of its own.
func DefaultMemoryRules() []MemoryRule {
	return []MemoryRule{
		{memoryName, MemoryLongTerm},
		{"memory/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*.md", MemoryDaily},
		{"memory/**/*.md", MemoryNote},
	}
}

// Origin says who wrote a memory file, as the Gateway has recorded it.
type Origin string

// The origins.
const (
	OriginUnknown  Origin = ""
	OriginOperator Origin = "operator"
	OriginAgent    Origin = "agent"
	// OriginExternal is content from outside, such as a page that was fetched: it is
	// never put into a conversation without being asked for.
	OriginExternal Origin = "external"
)

// ProvenanceFunc looks a file up in the Gateway's records, by workspace, path below it
// and hash of its content. It reads records and no workspace files.
type ProvenanceFunc func(ctx context.Context, dir, relative string, hash fsbridge.Digest) (Origin, error)

// CoreMemory is the memory core's own classifier. It decides from the true path below
// the workspace, its rules and the provenance records, and looks at no file: what this
// machine's disk holds under the same name makes no difference. Keeps RWS-17, RWS-18.
type CoreMemory struct {
	rules      []coreRule
	provenance ProvenanceFunc
}

type coreRule struct {
	alternatives [][]fsbridge.PatternElement
	kind         MemoryKind
}

var _ MemoryPlugin = (*CoreMemory)(nil)

// NewCoreMemory makes the classifier. Nil rules mean DefaultMemoryRules, a nil
// provenance that nothing is recorded.
func NewCoreMemory(rules []MemoryRule, provenance ProvenanceFunc) (*CoreMemory, error) {
	if rules == nil {
		rules = DefaultMemoryRules()
	}
	c := &CoreMemory{provenance: provenance}
	for _, r := range rules {
		patterns, err := parsePattern(strings.ToLower(r.Pattern))
		if err != nil {
			return nil, fmt.Errorf("memory rule: %w", err)
		}
		rule := coreRule{kind: r.Kind}
		for _, p := range patterns {
			rule.alternatives = append(rule.alternatives, p.Elems)
		}
		c.rules = append(c.rules, rule)
	}
	return c, nil
}

// Name implements MemoryPlugin.
func (c *CoreMemory) Name() string { return "core" }

// SupportsWorkspaceMemoryReadSources implements MemoryPlugin.
func (c *CoreMemory) SupportsWorkspaceMemoryReadSources() bool { return true }

// Classify implements MemoryPlugin.
func (c *CoreMemory) Classify(ctx context.Context, in MemoryClassifierInput) ([]MemoryClass, error) {
	classes := make([]MemoryClass, len(in.ReadSources))
	for i, s := range in.ReadSources {
		class, err := c.classify(ctx, in.Dir, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fsbridge.DisplayPath(s.Name), err)
		}
		classes[i] = class
	}
	return classes, nil
}

func (c *CoreMemory) classify(ctx context.Context, dir string, s ReadSource) (MemoryClass, error) {
	if s.WorkspaceRelativePath == "" {
		return MemoryClass{Reason: "it lies outside the workspace"}, nil
	}
	kind := c.kindOf(s.WorkspaceRelativePath)
	if kind == MemoryNone {
		return MemoryClass{Reason: "no rule makes it memory"}, nil
	}
	if c.provenance != nil {
		origin, err := c.provenance(ctx, dir, s.WorkspaceRelativePath, s.Hash)
		if err != nil {
			return MemoryClass{}, fmt.Errorf("provenance: %w", err)
		}
		if origin == OriginExternal {
			return MemoryClass{Kind: kind, Reason: "its content comes from outside"}, nil
		}
	}
	return MemoryClass{Kind: kind, Automatic: true}, nil
}

// kindOf applies the rules to a path below the workspace.
func (c *CoreMemory) kindOf(relative string) MemoryKind {
	elems := strings.Split(strings.ToLower(relative), "/")
	for _, r := range c.rules {
		for _, a := range r.alternatives {
			if matchElements(a, elems) {
				return r.kind
			}
		}
	}
	return MemoryNone
}

// matchElements matches the elements of a path, "**" standing for any number.
func matchElements(pattern []fsbridge.PatternElement, elems []string) bool {
	if len(pattern) == 0 {
		return len(elems) == 0
	}
	if pattern[0].Any {
		for n := range len(elems) + 1 {
			if matchElements(pattern[1:], elems[n:]) {
				return true
			}
		}
		return false
	}
	return len(elems) > 0 && pattern[0].Matches(elems[0]) && matchElements(pattern[1:], elems[1:])
}
