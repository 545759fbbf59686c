// Package hostdir keeps what an SSH host needs in one private directory:
//
//	config.yaml                     address, limits, metrics (edited by hand)
//	host_ed25519, host_ed25519.pub  the host key
//	workspaces/NAME/workspace.yaml  one workspace: directory, backend, access
//	workspaces/NAME/authorized_keys keys that may log in, in OpenSSH's form
//	workspaces/NAME/user_ca         authorities whose certificates may log in
//	audit.log                       who did what (JSON lines)
//
// The directory and everything in it belongs to the user of the server and cannot be
// changed by others; one that can is refused, as OpenSSH does, because whoever changes it
// decides who comes in. Files are replaced atomically. It starts nothing.
package hostdir
