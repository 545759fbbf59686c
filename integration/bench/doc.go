// Package bench measures what the design promises about speed, memory and reliability, and renders
// the result as docs/benchmarks.md.
//
// Every measure runs us and the peer it is compared with in turns, round by round, in one process
// and one run, so that whatever else the machine does hits both alike. What is printed are medians
// and 95th percentiles, and their ratio; the ratio is compared with its budget. A budget that is
// missed is reported as missed and is no error: time depends on the machine. Wrong bytes, a process
// that survives or a command that fails are errors.
//
// Each backend is measured by itself. The peer of a container backend is its own engine, asked for the
// same by its program and by its API; bubblewrap's are the plain program and a Docker engine.
// Those of ssh are the programs ssh, scp and rsync and an SFTP library, and a relay stands for distance.
//
// The package drives the public interfaces of sandbox, fsbridge, attachments and skills, and the
// berth program through its command line. It must not know how a backend does what it does.
package bench
