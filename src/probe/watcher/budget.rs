//! How often the connection table may be walked.

use std::time::{Duration, Instant};

/// What all probing may take of one core, with something left for the readings at both ends of the window.
const ALL: f64 = 0.0095;
/// What walks may take of it: at most, when the rest is cheap, and at least, so that there are some in any window.
const MOST: f64 = 0.004;
const LEAST: f64 = 0.0008;

/// A walk over the kernel's connection table costs about a millisecond per 250,000 buckets, and more with each connection. It is
/// done with every sample only if that fits into the probes' share of a core; otherwise as often as it fits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WalkBudget {
    first: Option<First>,
    walks: Duration,
    next: Option<Instant>,
}

/// The window's first walk, and the sampler's CPU time then.
#[derive(Debug, Clone, Copy)]
struct First {
    at: Instant,
    cpu: Duration,
}

impl WalkBudget {
    pub(super) fn allow(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// A walk at `now`, between these two readings of the sampler's CPU clock.
    pub(super) fn spent(&mut self, now: Instant, before: Duration, after: Duration) {
        let first = *self.first.get_or_insert(First {
            at: now,
            cpu: before,
        });
        let elapsed = now.saturating_duration_since(first.at);
        let other = before.saturating_sub(first.cpu).saturating_sub(self.walks);
        let cost = after.saturating_sub(before);
        self.walks += cost;
        self.next = Some(now + cost.div_f64(allowed_share(other, elapsed)));
    }
}

/// Share of a core for walks, when the other probes took `other` CPU time in `elapsed`.
fn allowed_share(other: Duration, elapsed: Duration) -> f64 {
    if elapsed.is_zero() {
        return f64::midpoint(LEAST, MOST);
    }
    (ALL - other.as_secs_f64() / elapsed.as_secs_f64()).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    /// CPU time of a simulated 60 s window with a sample each 50 ms: of all probing, and the number of walks.
    fn simulate(sample_cost: Duration, walk_cost: Duration) -> (f64, u32) {
        let began = Instant::now();
        let mut budget = WalkBudget::default();
        let (mut cpu, mut walks) = (Duration::ZERO, 0);
        for index in 0..1200 {
            let now = began + 50 * MS * index;
            cpu += sample_cost;
            if budget.allow(now) {
                let before = cpu;
                cpu += walk_cost;
                walks += 1;
                budget.spent(now, before, cpu);
            }
        }
        (cpu.as_secs_f64() / 60.0, walks)
    }

    #[test]
    fn cheap_walks_come_with_every_sample() {
        let (share, walks) = simulate(100 * US, 50 * US);
        assert_eq!(walks, 1200);
        assert!(share < 0.005);
    }

    #[test]
    fn dear_walks_are_thinned_out_to_the_budget() {
        for (sample, walk) in [
            (100 * US, MS),
            (350 * US, MS),
            (200 * US, 10 * MS),
            (350 * US, 30 * MS),
        ] {
            let (share, walks) = simulate(sample, walk);
            assert!(
                share < 0.01,
                "{share} with {walks} walks at {sample:?} and {walk:?}"
            );
            assert!(walks >= 2, "{walks} walks at {sample:?} and {walk:?}");
        }
    }
}
