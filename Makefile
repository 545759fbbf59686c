# Every target is one line here and a script in scripts/ that says what it does.
# A fresh Debian machine with Go needs nothing else: `make demo` and `make test` install the rest.

.PHONY: build release demo test test-short race integration lint fmt fuzz bench docs clean help

build: ## bin/berth and bin/berth-guest for this machine
	@scripts/build.sh

release: ## bin/release/berth-linux-*: one file each, with the guest helper inside
	@scripts/build.sh release

demo: ## see it work
	@scripts/setup.sh demo
	@scripts/build.sh
	@scripts/demo.sh

test: ## everything that must hold before a change is accepted
	@scripts/test.sh

test-short: ## the quick tests of every package
	@scripts/gotest.sh short

race: ## the tests of every package under the race detector
	@scripts/gotest.sh race

integration: build ## the end-to-end tests
	@scripts/gotest.sh integration

lint: ## golangci-lint
	@scripts/lint.sh

fmt: ## format the Go files
	@scripts/format.sh

fuzz: ## every fuzz target for FUZZTIME=20s; FUZZ=regexp selects
	@scripts/fuzz.sh

bench: ## measure, and write docs/benchmarks.md; BENCH=regexp selects
	@scripts/bench.sh

docs: ## the documents that are made from the code
	@scripts/docs.sh

clean: ## remove what the targets above made, except the tools in .cache/bin
	rm -rf bin .cache/golangci-lint internal/helperbin/embedded/berth-guest-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14
