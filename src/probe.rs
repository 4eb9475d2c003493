//! Probes: what the kernel and the proxy itself say, read from outside the proxy's cgroup.

pub mod report;
