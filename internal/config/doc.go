// Package config reads the configuration file of the command line and merges
// its layers into the effective configuration of one sandbox, remembering where
// each value came from.
//
// The file is strict YAML: an unknown field is an error with its line. It comes
// from $XDG_CONFIG_HOME/berth/config.yaml or an explicit path and is never read
// from inside a workspace, whose content is not trusted.
//
// Layers, the later wins: built-in defaults, the file's "defaults", its
// "backends.<name>", its "agents.<id>", the environment, flags. Environment
// variables in "env" are merged by name; every other list or map is replaced.
//
// The package knows the shape of sandbox.Config and no backend.
package config
