package wire

import "github.com/workberth/workberth/fsbridge"

// Op is the operation an open frame asks for: the first byte of its payload. The
// request of that operation follows.
type Op uint8

// The operations. Behind each: its request, and what comes back. "reply" means
// that the call goes on with data frames; "done" ends it.
const (
	OpNone Op = iota

	OpEcho // tail; done: the same bytes

	OpStat       // PathRequest; done: FileInfo
	OpLstat      // PathRequest; done: FileInfo
	OpRead       // ReadRequest; content after a size
	OpReadSource // ReadRequest; content after a Source
	OpReadRange  // RangeRequest; content after a size
	OpOpenReader // ReadRequest; content after a FileInfo
	OpWrite      // WriteRequest, content on ChannelIn; done: WriteResult
	OpCreate     // ContentRequest, content on ChannelIn; done: nothing
	OpAppend     // ContentRequest, content on ChannelIn; done: nothing
	OpMkdir      // MkdirRequest; done: nothing
	OpRemove     // RemoveRequest; done: nothing
	OpRename     // RenameRequest; done: nothing
	OpCopy       // CopyRequest; done: nothing
	OpReadLink   // PathRequest; done: string
	OpSymlink    // SymlinkRequest; done: nothing
	OpChmod      // ChmodRequest; done: nothing
	OpList       // ListRequest; batches of DirEntry
	OpListStream // ListRequest; batches of DirEntry
	OpWalk       // WalkRequest; batches of WalkEntry
	OpHash       // PathRequest; done: FileHash
	OpGlob       // GlobRequest; batches of strings
	OpWatch      // WatchRequest; reply, then batches of Event

	OpExec      // ExecRequest, input on ChannelIn; reply: pid, output on two channels; done: Status
	OpSignal    // SignalRequest; done: nothing
	OpResize    // ResizeRequest; done: nothing
	OpTerminate // TerminateRequest; done: TerminateResult
	OpSweep     // SweepRequest; done: number
	OpCall      // CallRequest, input on ChannelIn; output on two channels; done: tail

	opEnd
)

var opInfo = [opEnd]struct {
	name       string
	capability fsbridge.Capability
	mutates    bool
	content    bool
	long       bool
}{
	OpNone:       {name: "none"},
	OpEcho:       {name: "echo"},
	OpStat:       {name: "stat"},
	OpLstat:      {name: "lstat", capability: fsbridge.CapLstat},
	OpRead:       {name: "read"},
	OpReadSource: {name: "read", capability: fsbridge.CapReadFileWithSource},
	OpReadRange:  {name: "read", capability: fsbridge.CapReadRange},
	OpOpenReader: {name: "open", capability: fsbridge.CapOpenReader},
	OpWrite:      {name: "write", mutates: true, content: true},
	OpCreate:     {name: "create", capability: fsbridge.CapCreateFileExclusive, mutates: true, content: true},
	OpAppend:     {name: "append", capability: fsbridge.CapAppendFile, mutates: true, content: true},
	OpMkdir:      {name: "mkdir", capability: fsbridge.CapMkdir, mutates: true},
	OpRemove:     {name: "remove", capability: fsbridge.CapRemove, mutates: true},
	OpRename:     {name: "rename", capability: fsbridge.CapRename, mutates: true},
	OpCopy:       {name: "copy", capability: fsbridge.CapCopy, mutates: true, long: true},
	OpReadLink:   {name: "readlink", capability: fsbridge.CapReadLink},
	OpSymlink:    {name: "symlink", capability: fsbridge.CapSymlink, mutates: true},
	OpChmod:      {name: "chmod", capability: fsbridge.CapChmod, mutates: true},
	OpList:       {name: "list", capability: fsbridge.CapReadDirectory},
	OpListStream: {name: "list", capability: fsbridge.CapStreamDirectory, long: true},
	OpWalk:       {name: "walk", capability: fsbridge.CapWalk, long: true},
	OpHash:       {name: "hash", capability: fsbridge.CapHashFile, long: true},
	OpGlob:       {name: "glob", capability: fsbridge.CapGlob, long: true},
	OpWatch:      {name: "watch", capability: fsbridge.CapWatch, long: true},
	OpExec:       {name: "exec", mutates: true, content: true, long: true},
	OpSignal:     {name: "signal", mutates: true, long: true},
	OpResize:     {name: "resize", mutates: true},
	OpTerminate:  {name: "terminate", mutates: true, long: true},
	OpSweep:      {name: "sweep", mutates: true, long: true},
	OpCall:       {name: "call", mutates: true, content: true, long: true},
}

// Valid reports whether the operation exists.
func (o Op) Valid() bool { return o > OpNone && o < opEnd }

// String gives the operation's name, as a PathError carries it.
func (o Op) String() string {
	if o >= opEnd {
		return "unknown"
	}
	return opInfo[o].name
}

// Capability is the capability of a bridge the operation needs, or empty.
func (o Op) Capability() fsbridge.Capability {
	if o >= opEnd {
		return ""
	}
	return opInfo[o].capability
}

// Mutates reports whether the operation may change something: when its answer is
// lost the outcome is unknown.
func (o Op) Mutates() bool { return o < opEnd && opInfo[o].mutates }

// TakesContent reports whether data frames on ChannelIn may follow.
func (o Op) TakesContent() bool { return o < opEnd && opInfo[o].content }

// Long reports whether the operation usually takes longer than a file system
// needs to look something up.
func (o Op) Long() bool { return o < opEnd && opInfo[o].long }

// NewOpen begins the open frame of an operation, with room for size bytes of
// request. The stream number is set when it is sent.
func NewOpen(op Op, size int) *Frame {
	f := NewFrame(KindOpen, 0, size+1)
	f.B = append(f.B, byte(op))
	return f
}
