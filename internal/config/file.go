package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// File is a parsed configuration file.
type File struct {
	// Path is where it was read from; empty for no file.
	Path string
	doc  document
	tree ast.Node
}

// document is the top level of the file.
type document struct {
	Backend  *string          `yaml:"backend"`
	Defaults *Layer           `yaml:"defaults"`
	Backends map[string]Layer `yaml:"backends"`
	Agents   map[string]agent `yaml:"agents"`
	// Workspaces are bound workspaces, by name.
	Workspaces map[string]workspace `yaml:"workspaces"`
	Skills     *skillSettings       `yaml:"skills"`
}

// agent is one entry of "agents": a layer and what only an agent can choose.
type agent struct {
	Backend   *string `yaml:"backend"`
	Workspace *string `yaml:"workspace"`
	Scope     *string `yaml:"scope"`
	Layer     `yaml:",inline"`
}

// Error is a fault in a configuration file.
type Error struct {
	Path string
	// Line is 1-based; zero where the fault has no place.
	Line int
	Text string
	Err  error
}

// Error gives "path:line: text".
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Text)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// DefaultPath is the file read when no path is given:
// $XDG_CONFIG_HOME/berth/config.yaml, or below $HOME/.config.
func DefaultPath(getenv func(string) string) string {
	if d := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "berth", "config.yaml")
	}
	if h := getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Join(h, ".config", "berth", "config.yaml")
	}
	return ""
}

// Load reads the file at path. A missing file is an error when explicit and an
// empty configuration otherwise. A file that lies inside workspace (when that is
// not empty), also through links, is refused: whoever writes the workspace would
// decide how it is confined.
func Load(path string, explicit bool, workspace string) (*File, error) {
	if path == "" {
		return &File{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !explicit {
			return &File{}, nil
		}
		return nil, &Error{Path: path, Text: "cannot read the configuration: " + cause(err), Err: err}
	}
	defer f.Close()
	if err := outside(path, workspace); err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, &Error{Path: path, Text: "cannot read the configuration: " + cause(err), Err: err}
	}
	if !st.Mode().IsRegular() {
		return nil, &Error{Path: path, Text: "cannot read the configuration: not a regular file", Err: fs.ErrInvalid}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, &Error{Path: path, Text: "cannot read the configuration: " + cause(err), Err: err}
	}
	return Parse(path, data)
}

// Parse parses the content of a file; path is used in messages.
func Parse(path string, data []byte) (*File, error) {
	if len(data) > maxFileBytes {
		return nil, &Error{Path: path, Text: fmt.Sprintf("the configuration is larger than %d bytes", maxFileBytes)}
	}
	file := &File{Path: path}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return file, nil
	}
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlError(path, err)
	}
	if len(parsed.Docs) > 1 {
		return nil, &Error{Path: path, Text: "more than one YAML document; put everything into one"}
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		return file, nil
	}
	file.tree = parsed.Docs[0].Body
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.DisallowUnknownField())
	if err := dec.Decode(&file.doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(path, err)
	}
	return file, file.check()
}

// Agents lists the configured agent ids.
func (f *File) Agents() []string {
	var out []string
	for id := range f.doc.Agents {
		out = append(out, id)
	}
	return out
}

// line finds the line of a value by its keys; zero when it is not in the file.
func (f *File) line(keys ...string) int {
	n := f.tree
	for i, k := range keys {
		m, ok := n.(ast.MapNode)
		if !ok {
			return 0
		}
		n = nil
		for it := m.MapRange(); it.Next(); {
			if it.Key().GetToken().Value != k {
				continue
			}
			if i == len(keys)-1 {
				return it.Key().GetToken().Position.Line
			}
			n = it.Value()
		}
		if n == nil {
			return 0
		}
	}
	return 0
}

// errorAt makes an Error at the line of keys.
func (f *File) errorAt(text string, keys ...string) error {
	return &Error{Path: f.Path, Line: f.line(keys...), Text: strings.Join(keys, ".") + ": " + text}
}

// yamlError turns an error of the YAML library into one line with its place.
func yamlError(path string, err error) error {
	e := &Error{Path: path, Err: err}
	var ye yaml.Error
	if errors.As(err, &ye) {
		e.Text = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			e.Line = t.Position.Line
		}
		return e
	}
	e.Text, _, _ = strings.Cut(err.Error(), "\n")
	return e
}

// outside refuses a file inside the workspace.
func outside(path, workspace string) error {
	if workspace == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return &Error{Path: path, Text: "cannot read the configuration: " + cause(err), Err: err}
	}
	if real, err = filepath.Abs(real); err != nil {
		return &Error{Path: path, Text: cause(err), Err: err}
	}
	ws, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil // a missing workspace is reported by whoever needs it
	}
	if ws, err = filepath.Abs(ws); err != nil {
		return &Error{Path: path, Text: cause(err), Err: err}
	}
	rel, err := filepath.Rel(ws, real)
	if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return &Error{Path: path, Text: "the configuration lies inside the workspace, which is not trusted; move it out", Err: fs.ErrPermission}
	}
	return nil
}

// cause is the errno of a path error, without repeating the path.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
