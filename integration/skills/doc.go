// Package skills tests skills end to end: public skill sets as npm installs them, and workspaces in
// containers, behind OpenSSH and behind "berth host".
package skills
