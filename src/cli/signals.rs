//! The signals that end a run cleanly.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// SIGINT, SIGTERM and, unless the process was started to ignore it, SIGHUP.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|e| Failure::new(1, format!("cannot listen for signals: {e}")))
        };
        let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = SignalKind::hangup();
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            // `nohup sweep …` means that the run goes on when its terminal is closed.
            hangup: if is_ignored(&status, hangup) {
                None
            } else {
                Some(listen(hangup)?)
            },
        })
    }

    /// The name of the next signal that came.
    pub(super) async fn next(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            _ = hangup => "SIGHUP",
        }
    }
}

/// Whether a process ignores a signal, by its `/proc/PID/status`; if that cannot be read, it does not.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (kind.as_raw_value() - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        let status =
            "Name:\tsweep\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(!is_ignored(status, SignalKind::interrupt()));
        assert!(!is_ignored("Name:\tsweep\n", SignalKind::hangup()));
    }
}
