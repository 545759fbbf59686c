// Package attachments tests the staging of attachments end to end: in containers, over OpenSSH and
// through "berth host", and what is left when a process is killed or a connection cut in the middle.
package attachments
