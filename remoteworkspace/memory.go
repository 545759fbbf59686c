package remoteworkspace

import (
	"context"
	"fmt"
)

// MemoryKind says what a memory file is.
type MemoryKind string

// The kinds. MemoryNone is a file that is no memory.
const (
	MemoryNone     MemoryKind = ""
	MemoryLongTerm MemoryKind = "long-term"
	MemoryDaily    MemoryKind = "daily"
	MemoryNote     MemoryKind = "note"
)

// MemoryClassifierInput is what a classifier decides from: what the reads told.
type MemoryClassifierInput struct {
	// Dir is the workspace directory, as a name; it is not to be looked into.
	Dir string
	// Bound: the workspace lies on another machine.
	Bound bool
	// ReadSources describe the files, in the order of the result.
	ReadSources []ReadSource
}

// MemoryClass is the decision about one file.
type MemoryClass struct {
	Kind MemoryKind
	// Automatic: the file may become part of a conversation without being asked for.
	Automatic bool
	// Reason explains why it may not.
	Reason string
}

// MemoryPlugin classifies memory for automatic context.
type MemoryPlugin interface {
	// Name is for messages.
	Name() string
	// SupportsWorkspaceMemoryReadSources declares that Classify decides from
	// ReadSources alone and looks at no file of this machine. Keeps RWS-19.
	SupportsWorkspaceMemoryReadSources() bool
	// Classify returns one class for each read source.
	Classify(ctx context.Context, in MemoryClassifierInput) ([]MemoryClass, error)
}

// MemoryFile is a file with the decision about it.
type MemoryFile struct {
	ReadSource
	MemoryClass
}

// MemoryContext is what may become automatic memory context.
type MemoryContext struct {
	Files []MemoryFile
	// Left out says why there are no files at all, "" when the plugin has decided.
	LeftOut string
}

// ClassifyMemory asks a plugin about files that were read. For a bound workspace a
// plugin that does not declare support for read sources is not asked: automatic
// context is left out, with the reason, and nothing takes its place. A source that does
// not tell where its file lies is never automatic and never looked for elsewhere. Keeps
// RWS-17 to RWS-21.
func ClassifyMemory(ctx context.Context, plugin MemoryPlugin, in MemoryClassifierInput) (MemoryContext, error) {
	if plugin == nil {
		return MemoryContext{LeftOut: "no memory plugin is configured"}, nil
	}
	if in.Bound && !plugin.SupportsWorkspaceMemoryReadSources() {
		return MemoryContext{LeftOut: fmt.Sprintf("memory plugin %s does not support read sources of remote workspaces", plugin.Name())}, nil
	}
	var known []ReadSource
	for _, s := range in.ReadSources {
		if s.ResolvedPath != "" {
			known = append(known, s)
		}
	}
	asked := in
	asked.ReadSources = known
	classes, err := plugin.Classify(ctx, asked)
	if err != nil {
		return MemoryContext{}, fmt.Errorf("memory plugin %s: %w", plugin.Name(), err)
	}
	if len(classes) != len(known) {
		return MemoryContext{}, fmt.Errorf("memory plugin %s: %d classes for %d files: %w", plugin.Name(), len(classes), len(known), ErrInvalid)
	}
	var out MemoryContext
	next := 0
	for _, s := range in.ReadSources {
		f := MemoryFile{ReadSource: s, MemoryClass: MemoryClass{Reason: "the read did not tell where the file lies"}}
		if s.ResolvedPath != "" {
			f.MemoryClass = classes[next]
			next++
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

// MemorySources are the read sources of what a bootstrap has read, excluded files
// left out.
func (b Bootstrap) MemorySources() []ReadSource {
	var list []ReadSource
	for _, f := range b.Files {
		if f.Status == FileLoaded && f.Source != nil {
			list = append(list, *f.Source)
		}
	}
	return list
}
