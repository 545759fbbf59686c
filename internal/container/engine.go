package container

import (
	"context"
	"errors"
	"io"
	"time"
)

// Errors of an Engine. They are matched with errors.Is; the text comes from the engine.
var (
	// ErrNotFound: there is no such container or image.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the name is taken, or the container is in a state that does not fit.
	ErrConflict = errors.New("conflict")
	// ErrUnreachable: the engine does not answer. Whether a change was made is unknown.
	ErrUnreachable = errors.New("the engine does not answer")
)

// Engine is what the lifecycle of containers needs of a container engine. Docker and Podman
// implement it. Methods are safe for concurrent use; every error matches one of the above or is
// the engine's own refusal, in its words.
type Engine interface {
	// Describe tells what engine answers, and so whether one does.
	Describe(ctx context.Context) (Description, error)
	// Image looks an image up on the engine, without asking a registry.
	Image(ctx context.Context, name string) (Image, error)
	// Pull fetches an image from its registry. progress is told lines for people; it may be nil.
	Pull(ctx context.Context, name string, progress func(line string)) error
	// Import makes an image of a root file system in a tar archive and gives it a name.
	Import(ctx context.Context, name string, tar io.Reader) (id string, err error)
	// Load takes the images of an archive that "save" has written, and returns their names, or
	// their ids where they have none.
	Load(ctx context.Context, archive io.Reader) (names []string, err error)
	// Create makes a container and starts nothing. A taken name is ErrConflict.
	Create(ctx context.Context, s Spec) (Created, error)
	// Start starts a container that does not run. One that runs is no error.
	Start(ctx context.Context, id string) error
	// Wait returns when the container does not run, with the exit code of its last run. A
	// container that is removed meanwhile is ErrNotFound.
	Wait(ctx context.Context, id string) (code int, err error)
	// Kill kills every process of a container with SIGKILL, also of a paused one. One that does
	// not run is no error.
	Kill(ctx context.Context, id string) error
	// Remove kills and removes a container with its anonymous volumes. One that does not exist is
	// no error.
	Remove(ctx context.Context, id string) error
	// Inspect describes one container, by id or name.
	Inspect(ctx context.Context, id string) (Container, error)
	// List describes the containers that carry all these labels, running or not. Exit is not set.
	List(ctx context.Context, labels map[string]string) ([]Container, error)
	// Logs returns the last lines that the container's first process wrote, both streams, without
	// timestamps; of those since a moment, if that is not zero.
	Logs(ctx context.Context, id string, lines int, since time.Time) ([]byte, error)
	// Close gives connections back. It ends nothing on the engine.
	Close() error
	Carrier
}

// Carrier is the part of an Engine that brings content to its machine and takes it back, for one that
// does not see the files of this one.
type Carrier interface {
	// Attach takes the standard input and output of a container that was made with Spec.Attached and
	// does not run, for its next life; it is started afterwards. What that writes to its standard
	// error goes to stderr. Closing the connection ends the input. ctx is for the call alone.
	Attach(ctx context.Context, id string, stderr io.Writer) (io.ReadWriteCloser, error)
	// Unpack unpacks a tar archive in a directory of a container that does not run, volumes included.
	Unpack(ctx context.Context, id, dir string, tar io.Reader) error
	// Pack gives a file of a container as a tar archive.
	Pack(ctx context.Context, id, path string) (io.ReadCloser, error)
	// CreateVolume makes an empty volume. Whether the name is taken has to be asked before.
	CreateVolume(ctx context.Context, name string, labels map[string]string) error
	// Volume describes a volume; one that does not exist is ErrNotFound.
	Volume(ctx context.Context, name string) (Volume, error)
	// Volumes describes the volumes that carry all these labels.
	Volumes(ctx context.Context, labels map[string]string) ([]Volume, error)
	// RemoveVolume removes a volume. One that a container has is ErrConflict, one that does not
	// exist is no error.
	RemoveVolume(ctx context.Context, name string) error
}

// Volume is a directory that an engine keeps.
type Volume struct {
	Name   string
	Labels map[string]string
}

// Description is what an engine says of itself.
type Description struct {
	// Product is "docker" or "podman"; Version its version, API that of the protocol in use.
	Product, Version, API string
	// ID identifies the engine's installation where it has an identity of its own; else empty.
	ID string
	// Rootless: the engine and its containers run with an ordinary user's rights.
	Rootless bool
	// KeepsID: without root's rights, it can give that user the same number inside.
	KeepsID bool
	// OS and Arch are those of the engine's machine in Go's words; Kernel is its release.
	OS, Arch, Kernel string
	// CgroupVersion is "1" or "2", CgroupManager who makes the groups.
	CgroupVersion, CgroupManager string
	// Storage is the driver of images and writable layers; Root where they are.
	Storage, Root string
	// Runtime is the OCI runtime, Init the program that containers get as process 1; empty where
	// the engine does not tell.
	Runtime, Init string
	// Security lists what confines: "seccomp", "apparmor", "selinux", "userns".
	Security []string
	// PidsLimit, MemoryLimit and CPULimit tell whether the engine can keep these limits.
	PidsLimit, MemoryLimit, CPULimit bool
	// Warnings are the engine's own.
	Warnings []string
}

// Image is an image on the engine.
type Image struct {
	ID string
	// Names are its tags.
	Names []string
	// Env is the environment that containers of it start with, as NAME=VALUE.
	Env []string
	// Volumes are the places at which every container of it gets a volume, asked for or not; empty
	// where the engine makes none.
	Volumes []string
	// OS and Arch are what it is made for.
	OS, Arch string
	Size     int64
	Created  time.Time
}

// Created is a new container.
type Created struct {
	ID string
	// Warnings are the engine's, about settings that it does not keep.
	Warnings []string
}

// Status is what a container is doing, in the words that the engines share.
type Status string

// The statuses. Others are mapped to these: "configured" and "initialized" to created, "stopping"
// to running, "stopped" to exited.
const (
	StatusCreated    Status = "created"
	StatusRunning    Status = "running"
	StatusPaused     Status = "paused"
	StatusRestarting Status = "restarting"
	StatusRemoving   Status = "removing"
	StatusExited     Status = "exited"
	StatusDead       Status = "dead"
)

// Container describes a container.
type Container struct {
	ID, Name string
	// ImageID is the image that it was made from.
	ImageID string
	Labels  map[string]string
	Status  Status
	// Exit is how its last run ended; only Inspect tells it, and only where it has ended.
	Exit Exit
	// Started and Created are zero where unknown.
	Started, Created time.Time
	// PID is that of its first process on the engine's machine; zero when it does not run.
	PID int
}

// Exit is how a container's first process ended.
type Exit struct {
	// Code is the exit status; 128 and the number of the signal for a signal.
	Code int
	// OOM: the kernel ended it for want of memory.
	OOM bool
	// Error is the engine's, when the container could not be started.
	Error string
	Time  time.Time
}

// Spec is everything about a container before it is made. What is not in it is the engine's
// hardened default: nothing is inherited from the engine's configuration that would open more.
type Spec struct {
	Name   string
	Image  string
	Labels map[string]string
	// Argv is what runs, in place of the image's entrypoint and command, without a shell.
	Argv []string
	// Env is what its environment has beside the image's, as NAME=VALUE.
	Env []string
	// User is UID:GID.
	User     string
	Workdir  string
	Hostname string
	// Mounts in the order they are made.
	Mounts []Mount
	// ReadOnlyRoot makes the image's own files read-only.
	ReadOnlyRoot bool
	// Network is "none", "bridge" for the engine's usual one, "host", or the name of a network.
	Network string
	// PidMode is "" for the container's own processes, or "host".
	PidMode string
	// CapAdd are capabilities beside none, as "NET_ADMIN".
	CapAdd     []string
	Privileged bool
	// Seccomp is the profile: nil for the engine's default, empty for none, else a profile in the
	// format of Docker.
	Seccomp *string
	// KeepID maps the user of a rootless engine to the same numbers inside.
	KeepID bool
	// GPUs is "" for none, "all", or a number of them.
	GPUs   string
	Limits Limits
	// Attached: its standard input and output are a connection's, see Carrier.Attach. The engine
	// keeps no log of them, and the input ends with the connection. There is no init: it would have
	// the connection too, and others inside could take it from there.
	Attached bool
}

// Mount is a mount of a container.
type Mount struct {
	// Target is where it appears, absolute and clean.
	Target string
	// Source on the engine's machine, or the name of a Volume, which takes nothing from the image;
	// both empty for a file system in memory.
	Source, Volume string
	ReadOnly       bool
	// Relabel asks SELinux for a label that this and other containers may use, with Private for one
	// that only this container may.
	Relabel, Private bool
	// Size and Mode are those of a file system in memory, in bytes and as the bits of chmod. It
	// permits execution, and neither devices nor set-user-ID programs. Some runtimes take the
	// mode of the image's directory in its place, so it belongs to UID and GID.
	Size     int64
	Mode     uint32
	UID, GID int
}

// Limits are what a container may take; zero means no limit.
type Limits struct {
	Pids, MemoryBytes        int64
	CPUs                     float64
	OpenFiles, FileSizeBytes int64
}
