//! The container engine, through its API alone: connect, images, containers, and who owns what.
//!
//! There is no trait over the engine: all of them are spoken to in Docker's API, and faults that a real engine will not
//! produce on demand come from a scripted HTTP engine on a unix socket, which tests this code as well.

mod archive;
mod connect;
mod container;
mod engine;
mod error;
mod facts;
mod images;
mod lifecycle;
mod lines;
mod owner;
#[cfg(test)]
pub(crate) mod scripted;

pub use archive::Archive;
pub use connect::{EngineAddress, resolve_address};
pub use container::{ContainerSpec, Role};
pub use engine::Engine;
pub use error::EngineError;
pub use facts::EngineFacts;
pub use images::{ImageFacts, ImportRequest};
pub use lifecycle::{Created, WaitOutcome};
pub use lines::LineStream;
pub use owner::{Owner, Ownership, Removed, owner_state};
