// Package moby is the client of Docker engines: container.Engine on the engine's API, from version
// 1.41 (Docker 20.10) on. Everything that knows Docker's Go client is here.
package moby
