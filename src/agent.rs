//! The agent: this program inside the pod. It reads a [`job::Job`], generates the load, samples the kernel, and writes
//! [`job::AgentEvent`]s as JSON lines.

pub mod job;
