// Package mediastore keeps the files that people send, by content, on disk.
//
// An ingest makes two things: an object, the content, named by its SHA-256 and kept
// once however often it arrives, and a reference, a small file of its own that holds
// what is true of this arrival alone: the name the sender gave it, where it came
// from, when. References keep objects alive: [Store.Collect] removes the objects that
// no reference names, and nothing else.
//
// # Crashes
//
// Content is written to a temporary file, flushed, and renamed; the reference follows
// the same way. At any moment an object is complete or absent, a reference is complete
// or absent, and a reference's object is there. What a killed process leaves are
// temporary files and objects without a reference, which the next Collect removes.
//
// # Several processes
//
// Any number of processes may use one directory. An ingest holds a shared lock while it
// makes its temporary file and again while it gives object and reference their names;
// in between it locks its own temporary file. Collect holds the lock alone, and leaves
// temporary files alone whose owner lives.
//
// # Trust
//
// The directory is private (0700, objects 0400) and must belong to the user. Names and
// origins are the sender's words: bytes without meaning, never used as a path. The
// media type is found from the content, never from the name. A reader of an object
// compares the hash at the end, so that damage shows as an error and not as content.
//
// Not protected: a process of the same user can alter or delete everything.
//
// It must not know who sends, what a turn is, or where files are staged.
package mediastore
