//! The results folder: manifest, append-only trials, and their schema.
//!
//! `trials.jsonl` is the truth: one line a trial, synced when the trial ends. Every other file but `manifest.json` can be
//! made again from these two (see [`crate::report`]).

mod atomic;
pub mod columns;
pub mod derived;
mod error;
mod folder;
mod made;
pub mod manifest;
#[cfg(test)]
pub(crate) mod sample;
mod set_aside;
#[cfg(test)]
mod tests;
pub mod trial;
mod trials;

pub use error::{LineFault, RecordError};
pub use folder::{Folder, LockOwner, RunFolder};
pub use trials::{TrialKey, Trials};

/// Name of the manifest in a results folder.
pub const MANIFEST: &str = "manifest.json";
/// Name of the trials in a results folder.
pub const TRIALS: &str = "trials.jsonl";
/// Name of the trials that were replaced, in a results folder.
pub const SET_ASIDE: &str = "trials-set-aside.jsonl";
/// Name of the lock file in a results folder. It stays; the lock on it does not.
pub const LOCK: &str = ".lock";
