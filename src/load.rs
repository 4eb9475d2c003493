//! The load generator: arrival schedules, connections, TLS, HTTP, and what became of every request.

pub mod report;
