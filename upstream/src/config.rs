//! What the server is asked to do, in validated types.

use std::net::SocketAddr;
use std::time::Duration;

use crate::units::{MAX_BODY, MAX_DELAY, format_delay};

/// Settings of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where requests are served; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where `GET /stats` and its like are answered; `None` for no control port.
    pub control: Option<SocketAddr>,
    /// Delay of requests whose path asks for none.
    pub delay: DelayModel,
    /// Body of responses whose path asks for none, bytes.
    pub body: u64,
    /// Serving threads, at least 1.
    pub threads: usize,
    /// Seed of random delays.
    pub seed: u64,
    /// Arrivals to keep (8 bytes each); 0 keeps none.
    pub record_arrivals: usize,
}

impl Default for Config {
    /// 200 us and 1 KiB on a free loopback port, one thread, no control port.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            control: None,
            delay: DelayModel::Constant(Duration::from_micros(200)),
            body: 1024,
            threads: 1,
            seed: 1,
            record_arrivals: 0,
        }
    }
}

/// How a request's delay is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DelayModel {
    /// Always the same.
    Constant(Duration),
    /// Evenly distributed, both ends included.
    Uniform {
        /// Shortest.
        low: Duration,
        /// Longest.
        high: Duration,
    },
    /// One of two values.
    Bimodal {
        /// The usual one.
        low: Duration,
        /// The slow one.
        high: Duration,
        /// Share of slow requests, 0..=1.
        high_share: f64,
    },
}

/// A setting that cannot work, with what would.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Uniform or bimodal without its second value.
    #[error(
        "--distribution {distribution} needs --delay-high; give the longer delay, for example --delay-high 5ms"
    )]
    HighMissing {
        /// Its name.
        distribution: &'static str,
    },
    /// Bimodal without its share.
    #[error(
        "--distribution bimodal needs --delay-high-share; give the share of slow requests, for example --delay-high-share 0.01"
    )]
    ShareMissing,
    /// A setting that the distribution does not use.
    #[error(
        "{flag} has no effect with --distribution {distribution}; leave it out or choose another distribution"
    )]
    Unused {
        /// The flag.
        flag: &'static str,
        /// The distribution's name.
        distribution: &'static str,
    },
    /// The second value is the smaller one.
    #[error(
        "--delay-high {} is below --delay {}; give a longer delay, or swap the two", format_delay(*.high), format_delay(*.low)
    )]
    HighBelowLow {
        /// `--delay`.
        low: Duration,
        /// `--delay-high`.
        high: Duration,
    },
    /// A share outside 0..=1.
    #[error("--delay-high-share {share} is not a share; give a number from 0 to 1")]
    BadShare {
        /// As given.
        share: f64,
    },
    /// Longer than the histogram holds.
    #[error("{flag} {} is longer than 100s, the largest delay that can be measured; give at most 100s", format_delay(*.delay))]
    DelayTooLong {
        /// The flag.
        flag: &'static str,
        /// As given.
        delay: Duration,
    },
    /// Larger than is reasonable.
    #[error("--body {bytes} bytes is more than 1GiB; give at most 1GiB")]
    BodyTooLarge {
        /// As given.
        bytes: u64,
    },
    /// No thread or far too many.
    #[error(
        "--threads {threads} cannot work; give 1 to {}, one for each CPU that the server may use",
        crate::config::MAX_THREADS
    )]
    BadThreads {
        /// As given.
        threads: usize,
    },
    /// The two ports are the same.
    #[error("--listen and --control are both {addr}; give them different ports")]
    SamePort {
        /// As given.
        addr: SocketAddr,
    },
    /// More arrivals than are worth their memory.
    #[error("--record-arrivals {count} needs {} MiB; give at most {}", .count * 8 / 1_048_576, crate::config::MAX_ARRIVALS)]
    TooManyArrivals {
        /// As given.
        count: usize,
    },
}

/// Most serving threads.
pub(crate) const MAX_THREADS: usize = 256;
/// Most recorded arrivals (800 MB).
pub(crate) const MAX_ARRIVALS: usize = 100_000_000;

impl Config {
    /// Every fault of this configuration; empty when it can work.
    #[must_use]
    pub fn faults(&self) -> Vec<ConfigError> {
        let mut faults = self.delay.faults();
        if self.body > MAX_BODY {
            faults.push(ConfigError::BodyTooLarge { bytes: self.body });
        }
        if !(1..=MAX_THREADS).contains(&self.threads) {
            faults.push(ConfigError::BadThreads {
                threads: self.threads,
            });
        }
        if self.control == Some(self.listen) && self.listen.port() != 0 {
            faults.push(ConfigError::SamePort { addr: self.listen });
        }
        if self.record_arrivals > MAX_ARRIVALS {
            faults.push(ConfigError::TooManyArrivals {
                count: self.record_arrivals,
            });
        }
        faults
    }
}

impl DelayModel {
    /// `constant`, `uniform` or `bimodal`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Uniform { .. } => "uniform",
            Self::Bimodal { .. } => "bimodal",
        }
    }

    /// The constant delay, or the lower of two.
    #[must_use]
    pub fn low(&self) -> Duration {
        match *self {
            Self::Constant(low) | Self::Uniform { low, .. } | Self::Bimodal { low, .. } => low,
        }
    }

    /// The higher of two delays, if there are two.
    #[must_use]
    pub fn high(&self) -> Option<Duration> {
        match *self {
            Self::Constant(_) => None,
            Self::Uniform { high, .. } | Self::Bimodal { high, .. } => Some(high),
        }
    }

    fn faults(&self) -> Vec<ConfigError> {
        let (low, high) = (self.low(), self.high());
        let mut faults = Vec::new();
        for (flag, delay) in [("--delay", Some(low)), ("--delay-high", high)] {
            if let Some(delay) = delay.filter(|delay| *delay > MAX_DELAY) {
                faults.push(ConfigError::DelayTooLong { flag, delay });
            }
        }
        if let Some(high) = high.filter(|high| *high < low) {
            faults.push(ConfigError::HighBelowLow { low, high });
        }
        if let Self::Bimodal {
            high_share: share, ..
        } = *self
            && !(0.0..=1.0).contains(&share)
        {
            faults.push(ConfigError::BadShare { share });
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_at_once() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        let config = Config {
            listen,
            control: Some(listen),
            delay: DelayModel::Bimodal {
                low: Duration::from_secs(101),
                high: Duration::from_secs(1),
                high_share: f64::NAN,
            },
            body: MAX_BODY + 1,
            threads: 0,
            seed: 0,
            record_arrivals: MAX_ARRIVALS + 1,
        };
        let faults = config.faults();
        assert_eq!(faults.len(), 7, "{faults:?}");
        for fault in faults {
            let text = fault.to_string();
            assert!(
                text.contains("; give") || text.contains("; leave"),
                "no remedy: {text}"
            );
        }
    }

    #[test]
    fn the_default_works() {
        assert_eq!(Config::default().faults(), []);
    }
}
