//! The fixed-delay upstream.
fn main() {}
