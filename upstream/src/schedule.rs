//! Asks the scheduler to run a thread soon after it wakes.

use std::io;

const SLICE_NS: u64 = 100_000;

/// Shortens the calling thread's time slice to 100 us (its share of the CPU stays the same), so that beside a busy
/// process on the same CPU it runs when its timer expires, not when the other's slice of some milliseconds ends. Needs
/// no privilege. Kernels before 6.12 take the request and ignore it: `sched_setattr(2)`, `sched_runtime`.
///
/// # Errors
/// If the kernel or a seccomp filter refuses; the thread then runs as before.
pub fn prefer_short_slices() -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure: the default policy with nothing set.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_OTHER as u32;
    attributes.sched_nice = current_nice()?;
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the structure outlives the call, which reads `size` bytes of it; thread 0 is the calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

// The call sets the nice value too, and raising one's priority needs a privilege.
fn current_nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_no_privilege_and_keeps_the_nice_value() {
        let before = current_nice().expect("nice value");
        prefer_short_slices().expect("allowed to everyone");
        assert_eq!(current_nice().expect("nice value"), before);
    }
}
