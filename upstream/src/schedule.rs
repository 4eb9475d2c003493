//! Asks the scheduler to run a thread soon after it wakes.

use std::io;

const SLICE_NS: u64 = 100_000;

/// Shortens the calling thread's time slice to 100 us (its share of the CPU stays the same), so that beside a busy
/// process on the same CPU it runs when its timer expires, not when the other's slice of some milliseconds ends. Needs
/// no privilege. Kernels before 6.12 take the request and ignore it: `sched_setattr(2)`, `sched_runtime`.
///
/// A thread that was given another policy (`chrt`) keeps it.
///
/// # Errors
/// If the kernel or a seccomp filter refuses; the thread then runs as before.
pub fn prefer_short_slices() -> io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = SLICE_NS;
        // SAFETY: the structure outlives the call, which reads `size` bytes of it; thread 0 is the calling one.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        succeeded(result)?;
    }
    Ok(())
}

fn attributes() -> io::Result<libc::sched_attr> {
    const SIZE: usize = size_of::<libc::sched_attr>();
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is SIZE bytes long, no more of which are written; thread 0 is the calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    succeeded(result)?;
    Ok(attributes)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_no_privilege_and_changes_nothing_else() {
        let before = attributes().expect("readable");
        prefer_short_slices().expect("allowed to everyone");
        let after = attributes().expect("readable");
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
        // Kernels before 6.12 tell of no slice for this policy.
        assert!(
            [0, SLICE_NS].contains(&after.sched_runtime),
            "{}",
            after.sched_runtime
        );
    }
}
