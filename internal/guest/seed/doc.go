// Package seed fills a new workspace from a directory of another machine: [Pack] writes the
// directory as a tar stream, [Unpack] reads it where the workspace is to be.
//
// Files, directories, links, modes, times and empty directories arrive as they are; a link
// stays a link. What would reach out of the tree does not travel: links whose target lies
// outside, directly or by way of other links, and everything that is no file, directory or
// link. Pack tells what it left out.
//
// Unpack writes beside the workspace and gives it its name at the end, never in place of
// something that exists: nobody sees half a copy, and two at once do not mix.
package seed
