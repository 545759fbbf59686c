// Package skills tests skills end to end: public skill sets as npm installs them, and a workspace on
// a machine behind a real OpenSSH server.
package skills
