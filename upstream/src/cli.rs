//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::config::{Config, ConfigError, DelayModel};
use crate::units::{UnitError, parse_delay, parse_duration, parse_size};

/// An HTTP server that answers after a delay which is true to tens of microseconds.
///
/// It speaks HTTP/1.1 and HTTP/2 (prior knowledge, no TLS) on one port, reads every request to its end, waits, and
/// answers 200 with a body of x's. The delay counts from the end of the request's read to the start of the response's
/// write; it is never shorter than asked.
#[derive(Debug, Clone, Parser)]
#[command(name = "sweep-upstream", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Args {
    /// Address and port to serve on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Delay before each response: 0 to 100s
    #[arg(long, value_name = "DELAY", default_value = "200us", value_parser = delay)]
    pub delay: Duration,
    /// Size of each response's body: 512, 1KiB, 1Ki (1024 bytes), 1K (1000 bytes); at most 1GiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = size)]
    pub body: u64,
    /// How delays are distributed
    #[arg(long, value_enum, default_value_t = Distribution::Constant)]
    pub distribution: Distribution,
    /// The longer delay: upper end (uniform) or the slow requests' (bimodal)
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    pub delay_high: Option<Duration>,
    /// Share of requests that take --delay-high (bimodal), 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub delay_high_share: Option<f64>,
    /// Seed of random delays: one seed, one sequence of delays in each thread
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Address of the control port; without it there is none
    #[arg(long, value_name = "ADDR")]
    pub control: Option<SocketAddr>,
    /// End by itself after this time, so that a forgotten server does not stay: 10m, 2h
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    pub max_lifetime: Option<Duration>,
    /// Serving threads; connections are dealt out to them in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Keep the arrival times of the first N requests (8 bytes each) for the control port's /arrivals
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub record_arrivals: usize,
}

const AFTER_HELP: &str = "\
Paths (in either order; what follows them is ignored, any other path takes the settings):
  /delay/50ms            this delay
  /size/10KiB            this body size
  /delay/1ms/size/10KiB  both

Control port:
  GET  /stats      served requests, their delay (p50, p99, max) and lateness since the last reset, JSON
  GET  /histogram  the whole distribution of the delay, HdrHistogram V2 in base64
  GET  /arrivals   arrival times (CLOCK_MONOTONIC, ns), JSON; ?format=binary: little-endian u64
  POST /reset      begins a new window and tells of the one that ended

On SIGTERM, SIGINT or at the end of its lifetime it prints the same JSON as /stats as its last line and exits 0.
Exit codes: 2 bad arguments, 3 the address cannot be used or the system gives no thread.";

/// Shape of the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// Always --delay
    Constant,
    /// Evenly between --delay and --delay-high
    Uniform,
    /// --delay, but --delay-high for a share of the requests
    Bimodal,
}

fn delay(value: &str) -> Result<Duration, UnitError> {
    parse_delay(value)
}

fn size(value: &str) -> Result<u64, UnitError> {
    parse_size(value)
}

fn lifetime(value: &str) -> Result<Duration, String> {
    parse_duration(value)
        .filter(|lifetime| !lifetime.is_zero())
        .ok_or_else(|| {
            format!("`{value}` is not a lifetime; give a duration above 0, for example 10m")
        })
}

impl Args {
    /// The settings that these arguments ask for.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn config(&self) -> Result<Config, Vec<ConfigError>> {
        let mut faults = Vec::new();
        let delay = self.delay_model(&mut faults);
        let config = Config {
            listen: self.listen,
            control: self.control,
            delay,
            body: self.body,
            threads: self.threads,
            seed: self.seed,
            record_arrivals: self.record_arrivals,
        };
        faults.extend(config.faults());
        if faults.is_empty() {
            Ok(config)
        } else {
            Err(faults)
        }
    }

    fn delay_model(&self, faults: &mut Vec<ConfigError>) -> DelayModel {
        let low = self.delay;
        let (high, share) = (self.delay_high, self.delay_high_share);
        let (name, needs_high, needs_share) = match self.distribution {
            Distribution::Constant => ("constant", false, false),
            Distribution::Uniform => ("uniform", true, false),
            Distribution::Bimodal => ("bimodal", true, true),
        };
        let unused = |flag| ConfigError::Unused {
            flag,
            distribution: name,
        };
        match (needs_high, high) {
            (true, None) => faults.push(ConfigError::HighMissing { distribution: name }),
            (false, Some(_)) => faults.push(unused("--delay-high")),
            _ => {}
        }
        match (needs_share, share) {
            (true, None) => faults.push(ConfigError::ShareMissing),
            (false, Some(_)) => faults.push(unused("--delay-high-share")),
            _ => {}
        }
        // A missing value has been reported; what stands in for it is never served.
        let high = high.unwrap_or(low);
        match self.distribution {
            Distribution::Constant => DelayModel::Constant(low),
            Distribution::Uniform => DelayModel::Uniform { low, high },
            Distribution::Bimodal => DelayModel::Bimodal {
                low,
                high,
                high_share: share.unwrap_or(0.0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(arguments: &[&str]) -> String {
        let arguments = ["sweep-upstream"].iter().chain(arguments);
        match Args::try_parse_from(arguments) {
            Err(error) => error.to_string(),
            Ok(args) => match args.config() {
                Err(faults) => faults.iter().map(|fault| format!("{fault}\n")).collect(),
                Ok(config) => panic!("no fault in {config:?}"),
            },
        }
    }

    #[test]
    fn the_documented_defaults() {
        let args = Args::try_parse_from(["sweep-upstream"]).expect("no argument is required");
        let config = args.config().expect("valid");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(
            config.delay,
            DelayModel::Constant(Duration::from_micros(200))
        );
        assert_eq!(
            (config.body, config.threads, config.control),
            (1024, 1, None)
        );
    }

    #[test]
    fn a_bimodal_delay() {
        let args = Args::try_parse_from([
            "sweep-upstream",
            "--distribution=bimodal",
            "--delay-high=50ms",
            "--delay-high-share=0.01",
        ]);
        assert_eq!(
            args.expect("valid").config().expect("valid").delay,
            DelayModel::Bimodal {
                low: Duration::from_micros(200),
                high: Duration::from_millis(50),
                high_share: 0.01
            }
        );
    }

    #[test]
    fn bad_values_are_named_with_their_remedy() {
        for (arguments, expected) in [
            (&["--body", "1Q"][..], "`1Q` is not a size; give bytes"),
            (
                &["--delay", "200"],
                "`200` is not a delay; give a number with its unit",
            ),
            (&["--max-lifetime", "0s"], "`0s` is not a lifetime"),
            (&["--listen", "8080"], "'8080'"),
            (
                &["--threads", "0"],
                "--threads 0 cannot work; give 1 to 256",
            ),
            (
                &["--distribution", "uniform"],
                "uniform needs --delay-high; give",
            ),
            (
                &["--distribution", "uniform", "--delay-high", "100us"],
                "--delay-high 100us is below --delay 200us",
            ),
            (
                &["--delay-high", "1ms"],
                "--delay-high has no effect with --distribution constant",
            ),
            (&["--distribution", "poisson"], "constant, uniform, bimodal"),
        ] {
            let text = faults(arguments);
            assert!(text.contains(expected), "{arguments:?}: {text}");
        }
    }

    #[test]
    fn all_faults_at_once() {
        let text = faults(&[
            "--distribution=bimodal",
            "--threads=0",
            "--listen=127.0.0.1:1",
            "--control=127.0.0.1:1",
        ]);
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
