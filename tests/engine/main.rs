//! Tests with a real engine and a real Envoy: `make test` gets both. They run one at a time, since they measure.

mod ending;
mod memory;
mod overlay2;
mod refusals;
mod support;
mod sweep;
