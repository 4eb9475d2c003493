//! Tests with a real engine and a real Envoy: `make test` gets both. They run one at a time, since they measure.

mod daemon;
mod disk;
mod durability;
mod ending;
mod memory;
mod overlay2;
mod proxies;
mod readers;
mod refusals;
mod restart;
mod rows;
mod running;
mod strangers;
mod support;
mod sweep;
mod usable;
mod verdicts;
mod verdicts_invalid;
mod verdicts_memory;
