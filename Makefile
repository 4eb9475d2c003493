# `make quick` gives a first result, `make test` tests everything; the rest is in CONTRIBUTING.md.
.DEFAULT_GOAL := help
.PHONY: help quick test test-cgroup2 lint clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make quick         build, get an Envoy, run matrix/quick.toml and print its table
quick:
	@scripts/quick

## make test          everything that the tests need, then all tests (real containers)
test:
	@scripts/test

## make test-cgroup2  every verdict on a cgroup-v2 guest under QEMU (root; some 15 minutes)
test-cgroup2:
	@tests/cgroup2/run

## make lint          format, clippy, documentation, shell scripts, dependencies
lint:
	@scripts/lint

## make clean         remove what was built; results are kept
clean:
	cargo clean
