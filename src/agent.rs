//! The agent: this program inside the pod. It reads a [`job::Job`], generates the load, samples the kernel, and writes
//! [`job::AgentEvent`]s as JSON lines.

pub mod facts;
pub mod job;
pub mod page_cache;
mod run;
mod upstream_stats;

pub use run::run;
