//! `matrix.toml` → a validated [`Matrix`](settings), with every fault positioned.

pub mod settings;
