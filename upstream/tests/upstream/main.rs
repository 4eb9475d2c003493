//! The upstream on real sockets, in-process and as a process.

mod client;
mod control;
mod delay;
mod http1;
mod http2;
mod process;
