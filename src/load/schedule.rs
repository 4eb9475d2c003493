//! When requests are due. Pure: times follow from the index (constant) or from the seed (Poisson), never from the clock,
//! so that a late generator cannot shift what it owes.

use std::collections::VecDeque;

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::clock::{NEVER, SEC};

/// The intended times of one arrival process, in order, nanoseconds.
#[derive(Debug, Clone)]
pub struct Arrivals {
    process: Process,
    next: u64,
}

#[derive(Debug, Clone)]
enum Process {
    Constant {
        start: u64,
        interval: f64,
        index: u64,
        stride: u64,
    },
    Poisson {
        mean_gap: f64,
        // Kept as a float relative to `start`, so that rounding does not accumulate.
        elapsed: f64,
        start: u64,
        rng: Box<Xoshiro256PlusPlus>,
    },
    Never,
}

impl Arrivals {
    /// Arrival `i` at `start + (i + 1/2) / rate`, of which this process takes `offset`, `offset + stride`, … Half an
    /// interval of phase keeps counts over whole seconds exact instead of one more or less by rounding.
    #[must_use]
    pub fn constant(start: u64, rate: f64, offset: u64, stride: u64) -> Self {
        if rate <= 0.0 {
            return Self::never();
        }
        let mut arrivals = Self {
            process: Process::Constant {
                start,
                interval: SEC as f64 / rate,
                index: offset,
                stride,
            },
            next: 0,
        };
        arrivals.next = arrivals.process.current();
        arrivals
    }

    /// Exponential gaps with mean 1/rate, from a seed.
    #[must_use]
    pub fn poisson(start: u64, rate: f64, seed: u64) -> Self {
        if rate <= 0.0 {
            return Self::never();
        }
        let mut arrivals = Self {
            process: Process::Poisson {
                mean_gap: SEC as f64 / rate,
                elapsed: 0.0,
                start,
                rng: Box::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            },
            next: 0,
        };
        arrivals.advance();
        arrivals
    }

    /// No arrivals at all.
    #[must_use]
    pub fn never() -> Self {
        Self {
            process: Process::Never,
            next: NEVER,
        }
    }

    /// The next intended time.
    #[must_use]
    pub fn peek(&self) -> u64 {
        self.next
    }

    /// Takes the next intended time.
    pub fn take(&mut self) -> u64 {
        let due = self.next;
        self.advance();
        due
    }

    fn advance(&mut self) {
        match &mut self.process {
            Process::Constant { index, stride, .. } => *index += *stride,
            Process::Poisson {
                mean_gap,
                elapsed,
                rng,
                ..
            } => *elapsed += exponential(rng) * *mean_gap,
            Process::Never => {}
        }
        self.next = self.process.current();
    }
}

impl Process {
    fn current(&self) -> u64 {
        match self {
            Self::Constant {
                start,
                interval,
                index,
                ..
            } => start + ((*index as f64 + 0.5) * interval) as u64,
            Self::Poisson { elapsed, start, .. } => start + *elapsed as u64,
            Self::Never => NEVER,
        }
    }
}

/// A draw from the exponential distribution with mean 1, by inversion of 53 uniform bits in (0, 1].
fn exponential(rng: &mut Xoshiro256PlusPlus) -> f64 {
    use rand::Rng as _;
    let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}

/// Where requests come from, and the queue of those that are due but unsent.
///
/// The open queue holds no list: it is the distance between two cursors over the same schedule, so a proxy that hangs
/// under any rate costs no memory.
#[derive(Debug, Clone)]
pub enum Source {
    /// A schedule that never waits.
    Open {
        /// What is still to come.
        arriving: Arrivals,
        /// What is to be sent next.
        sending: Arrivals,
        /// Arrived, not yet sent.
        unsent: u64,
    },
    /// Users with zero think time: each is due again when its last request ended.
    Closed {
        /// Times since which users wait for a connection, oldest first.
        waiting: VecDeque<u64>,
    },
}

impl Source {
    /// An open source.
    #[must_use]
    pub fn open(arrivals: Arrivals) -> Self {
        Self::Open {
            sending: arrivals.clone(),
            arriving: arrivals,
            unsent: 0,
        }
    }

    /// A closed source whose users are all due at `start`.
    #[must_use]
    pub fn closed(users: u32, start: u64) -> Self {
        Self::Closed {
            waiting: std::iter::repeat_n(start, users as usize).collect(),
        }
    }

    /// Whether users wait for answers.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Time of the next arrival.
    #[must_use]
    pub fn next_arrival(&self) -> u64 {
        match self {
            Self::Open { arriving, .. } => arriving.peek(),
            Self::Closed { .. } => NEVER,
        }
    }

    /// Lets one arrival into the queue if it is due, and tells its intended time.
    pub fn arrive(&mut self, now: u64) -> Option<u64> {
        match self {
            Self::Open {
                arriving, unsent, ..
            } if arriving.peek() <= now => {
                *unsent += 1;
                Some(arriving.take())
            }
            _ => None,
        }
    }

    /// Takes the oldest unsent request: its intended time.
    pub fn take(&mut self) -> Option<u64> {
        match self {
            Self::Open {
                sending, unsent, ..
            } => {
                *unsent = unsent.checked_sub(1)?;
                Some(sending.take())
            }
            Self::Closed { waiting } => waiting.pop_front(),
        }
    }

    /// A user's request ended; in a closed loop its next one is due now.
    pub fn ended(&mut self, now: u64) {
        if let Self::Closed { waiting } = self {
            waiting.push_back(now);
        }
    }

    /// Due, not yet sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        match self {
            Self::Open { unsent, .. } => *unsent,
            Self::Closed { waiting } => waiting.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(mut arrivals: Arrivals, count: usize) -> Vec<u64> {
        (0..count).map(|_| arrivals.take()).collect()
    }

    proptest! {
        #[test]
        fn a_constant_schedule_has_no_drift(rate in 0.1f64..100_000.0, index in 0u64..10_000_000) {
            let start = 12_345_678_901;
            let due = Arrivals::constant(start, rate, index, 1).peek();
            let exact = start as f64 + (index as f64 + 0.5) / rate * 1e9;
            prop_assert!((due as f64 - exact).abs() <= 2.0 + exact * 1e-15);
        }

        #[test]
        fn stripes_of_threads_make_the_whole_schedule(rate in 1.0f64..10_000.0, threads in 1u64..5) {
            let whole = first(Arrivals::constant(0, rate, 0, 1), 40);
            let mut striped: Vec<u64> = (0..threads)
                .flat_map(|thread| first(Arrivals::constant(0, rate, thread, threads), 40))
                .collect();
            striped.sort_unstable();
            prop_assert_eq!(&striped[..40], &whole[..]);
        }

        #[test]
        fn the_open_queue_is_first_in_first_out_without_a_list(gaps in prop::collection::vec(0u64..30, 1..200), seed: u64) {
            let arrivals = Arrivals::poisson(0, 1e8, seed);
            let mut source = Source::open(arrivals.clone());
            let mut model = VecDeque::new();
            let mut now = 0;
            for gap in gaps {
                now += gap;
                while let Some(due) = source.arrive(now) {
                    prop_assert!(due <= now);
                    model.push_back(due);
                }
                prop_assert!(source.next_arrival() > now);
                if gap % 3 == 0 {
                    prop_assert_eq!(source.take(), model.pop_front());
                }
                prop_assert_eq!(source.unsent(), model.len() as u64);
            }
        }
    }

    #[test]
    fn whole_seconds_hold_exactly_rate_arrivals() {
        for rate in [1.0, 2.0, 99.0, 101.0, 3900.0, 10_000.0] {
            let due = first(Arrivals::constant(0, rate, 0, 1), 3 * rate as usize + 1);
            for second in 0..3u64 {
                let inside = due
                    .iter()
                    .filter(|&&t| (second * SEC..(second + 1) * SEC).contains(&t))
                    .count();
                assert_eq!(inside, rate as usize, "rate {rate}, second {second}");
            }
        }
        assert_eq!(Arrivals::constant(0, 0.5, 0, 1).peek(), SEC);
    }

    #[test]
    fn poisson_gaps_are_exponential_and_repeatable() {
        let due = first(Arrivals::poisson(7, 1000.0, 42), 50_001);
        assert_eq!(due, first(Arrivals::poisson(7, 1000.0, 42), 50_001));
        assert_ne!(due, first(Arrivals::poisson(7, 1000.0, 43), 50_001));
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "mean gap {mean} ms");
        let median = {
            let mut sorted = gaps.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        assert!(
            (median - std::f64::consts::LN_2).abs() < 0.02,
            "median {median} ms"
        );
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }

    #[test]
    fn users_wait_in_order_and_return_when_their_request_ends() {
        let mut source = Source::closed(2, 5);
        assert_eq!(
            (source.take(), source.take(), source.take()),
            (Some(5), Some(5), None)
        );
        source.ended(9);
        assert_eq!((source.unsent(), source.take()), (1, Some(9)));
        assert_eq!(Source::open(Arrivals::never()).next_arrival(), NEVER);
    }
}
