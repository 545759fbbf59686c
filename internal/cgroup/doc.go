// Package cgroup bounds a tree of processes together: how many there are, how much
// memory and how much processor time they use.
//
// [Find] looks where this process may make control groups, in version 1 and
// version 2 hierarchies and in a mixture of both. Groups are made below the group
// this process is in (or, in version 2, below the nearest of its ancestors that
// hands the needed controllers down), so that the limits set on this process hold
// on them too.
//
// [Group.Enter] puts a process into a group at its birth, not afterwards: nothing it
// starts can stay outside.
//
// Nothing here needs root where groups were delegated to the user. Where they were
// not, Find says so and the caller falls back to what rlimits can do.
//
// The package knows no sandbox. Names of groups are its caller's.
package cgroup
