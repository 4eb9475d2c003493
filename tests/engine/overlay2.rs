//! The same trials on an engine with overlay2, whose containers share page cache: what a user's machine has.

use sweep::record::trial::{FailureKind, TrialRecord};
use sweep::spec::settings::PageCache;

use crate::daemon::Daemon;
use crate::support::{Bench, assert_measured, matrix};

pub(crate) fn file_bytes_at_ready(trial: &TrialRecord) -> u64 {
    let probe = &trial.agent.as_ref().expect("a result").probe;
    probe
        .memory_at_ready
        .expect("memory at readiness")
        .file_bytes
        .expect("known")
}

#[test]
fn engine_overlay2_page_cache_is_as_asked_and_decides_what_a_memory_limit_means() {
    let table = "\"proxy.page_cache\" = [\"warm\", \"cold\"]\nmemory = [\"64Mi\"]";
    let bench = Bench::new(&matrix(2, table, ""));
    let engine = Daemon::start();
    let bench = bench.on(engine.host());
    let trials = bench.run();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_measured(trial);
        let file = file_bytes_at_ready(trial) >> 20;
        match trial.page_cache_asked {
            PageCache::Warm => {
                assert!(file < 5, "{file} MiB of page cache charged to a warm proxy")
            }
            PageCache::Cold => assert!(
                file > 30,
                "{file} MiB of page cache charged to a cold proxy"
            ),
        }
    }

    let bench = {
        drop(bench);
        Bench::new(&matrix(1, "memory = [\"8Mi\", \"64Mi\"]", "")).on(engine.host())
    };
    let trials = bench.run();
    let (small, fine): (Vec<_>, Vec<_>) = trials
        .iter()
        .partition(|t| t.limits.memory.is_some_and(|m| m.0 == 8 << 20));
    assert_eq!(
        small[0].failure,
        Some(FailureKind::OomKilled),
        "{:?}",
        small[0].reasons
    );
    assert_measured(fine[0]);
}
