//! sweep
fn main() {}
