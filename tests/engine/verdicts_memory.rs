//! Verdicts of memory and swap limits, on an engine whose containers share page cache, and what the page cache does to
//! repetitions.

use std::path::PathBuf;
use std::process::Command;

use crate::daemon::Daemon;
use crate::overlay2::file_bytes_at_ready;
use crate::rows::{assert_evidence, assert_within, cell_verdict, judged, rows};
use crate::support::{Bench, assert_measured};
use crate::verdicts::short;

const MIB: f64 = 1_048_576.0;

#[test]
fn engine_overlay2_a_proxy_that_pays_for_its_page_cache_is_memory() {
    let engine = Daemon::start();
    let bench = Bench::new(&short(
        "controls = [\"unlimited\"]",
        "\"proxy.page_cache\" = [\"warm\", \"cold\"]",
        "",
        "rate = 400\nconnections = 16\nhandshake_rate = 20",
        "[limits]\nmemory = \"56Mi\"",
    ))
    .on(engine.host());
    bench.run_usable();
    let rows = rows(&bench.results());
    let starved = judged(&rows, "proxy.page_cache=cold", "memory");
    assert_eq!(starved.text("page_cache"), "cold");
    assert_within(starved, "memory_max_bytes", 50.0 * MIB, 56.0 * MIB);
    assert_within(starved, "memory_refault_file", 300.0, 1e12);
    assert_within(starved, "memory_pgmajfault", 30.0, 1e9);
    assert_eq!(starved.number("oom_kill"), 0.0);
    assert_eq!(starved.number("swap_max_bytes"), 0.0);
    assert_evidence(starved, &["refaults of file pages per second"]);
    assert_eq!(
        cell_verdict(&bench.results(), "proxy.page_cache=cold"),
        "memory"
    );
    // The same limit holds a proxy whose binary somebody else has read.
    let warm = judged(&rows, "proxy.page_cache=warm", "ok");
    assert_within(warm, "memory_max_bytes", 8.0 * MIB, 40.0 * MIB);
    assert_eq!(warm.number("memory_refault_file"), 0.0);
}

/// A swap file of this machine while the value lives.
struct Swap(PathBuf);

impl Swap {
    /// `Err` with the machine's own words where it refuses.
    fn on() -> Result<Self, String> {
        let run = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output();
            let output = output.map_err(|e| format!("{program}: {e}"))?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            output
                .status
                .success()
                .then_some(())
                .ok_or_else(|| format!("{program}: {}", said.trim()))
        };
        let path = PathBuf::from(format!("/var/lib/sweep-test-swap-{}", std::process::id()));
        let swap = Self(path);
        let file = swap.0.to_str().expect("UTF-8").to_owned();
        run(
            "dd",
            &["if=/dev/zero", "bs=1M", "count=512", &format!("of={file}")],
        )?;
        run("chmod", &["600", &file])?;
        run("mkswap", &[&file])?;
        run("swapon", &[&file])?;
        Ok(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(&self.0).output();
        let _ = fs_err::remove_file(&self.0);
    }
}

/// 2,000 connections in use need some 60 MiB: twice the limit.
const WORKING_SET: &str = "rate = 1000\nconnections = 2000\nhandshake_rate = 0";

#[test]
#[expect(
    clippy::print_stderr,
    reason = "who runs it must see what was not tested"
)]
fn engine_overlay2_a_working_set_over_the_limit_is_oom_and_with_swap_swap() {
    let engine = Daemon::start();
    let swap = Swap::on();
    let levels = if swap.is_ok() {
        "\"0\", \"256Mi\""
    } else {
        "\"0\""
    };
    let bench = Bench::new(&short(
        "controls = [\"unlimited\"]",
        &format!("swap = [{levels}]"),
        "",
        WORKING_SET,
        "[limits]\nmemory = \"28Mi\"",
    ))
    .on(engine.host());
    bench.run_usable();
    let rows = rows(&bench.results());
    let killed = judged(&rows, "swap=0", "oom");
    assert_eq!(killed.text("failure"), "oom_killed");
    assert_eq!(killed.number("exit_code"), 137.0);
    assert_eq!(killed.number("oom_killed"), 1.0);
    assert!(killed.number("ready_after_us") > 0.0, "killed under load");
    // The last look before the cgroup was gone.
    assert_within(killed, "memory_ready_bytes", 8.0 * MIB, 28.0 * MIB);
    assert_evidence(killed, &["OOM", "memory limit 28.0 MiB"]);
    if let Err(refused) = &swap {
        eprintln!("SKIPPED the verdict swap: this machine refuses a swap file: {refused}");
        return;
    }
    let swapping = judged(&rows, "swap=256Mi", "swap");
    assert_within(swapping, "swap_max_bytes", 10.0 * MIB, 256.0 * MIB);
    assert_within(swapping, "memory_refault_anon", 300.0, 1e9);
    assert_within(swapping, "memory_pgmajfault", 30.0, 1e9);
    assert_within(swapping, "memory_max_bytes", 24.0 * MIB, 28.0 * MIB);
    assert_eq!(swapping.number("oom_kill"), 0.0);
    assert_evidence(swapping, &["came back from swap", "in swap", "unlimited"]);
}

/// Takes the pages of the engine's Envoy out of memory, as after a boot.
fn evict(engine: &Daemon) {
    let layers = fs_err::read_dir(engine.layers()).expect("layers");
    let binaries = layers.map(|l| l.expect("a layer").path().join("diff/usr/local/bin/envoy"));
    let mut found = 0;
    for binary in binaries.filter(|b| b.exists()) {
        let file = fs_err::File::open(binary).expect("open");
        file.sync_all().expect("dirty pages stay in memory");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
        found += 1;
    }
    assert_eq!(found, 1, "one layer has Envoy");
}

#[test]
fn engine_overlay2_the_first_repetition_is_like_the_third() {
    let engine = Daemon::start();
    let text = short(
        "",
        "memory = [\"64Mi\"]",
        "",
        "rate = 400\nconnections = 16\nhandshake_rate = 20",
        "",
    );
    let bench = Bench::new(&text.replace("repetitions = 1", "repetitions = 3")).on(engine.host());
    evict(&engine);
    let trials = bench.run_usable();
    assert_eq!(trials.len(), 3);
    trials.iter().for_each(assert_measured);
    let rows = rows(&bench.results());
    for (trial, row) in trials.iter().zip(&rows) {
        // Without the care of the page cache the first pays for some 60 MB.
        assert!(file_bytes_at_ready(trial) < 2 << 20, "{}", row.told());
        assert_eq!(row.text("page_cache"), "warm");
        assert_eq!(row.number("memory_pgmajfault_total"), 0.0, "{}", row.told());
    }
    let (first, third) = (&rows[0], &rows[2]);
    let memory = |column| (first.number(column) - third.number(column)).abs();
    assert!(memory("memory_ready_bytes") < 2.0 * MIB);
    assert!(memory("memory_max_bytes") < 4.0 * MIB);
    let ready = first.number("ready_after_us") / third.number("ready_after_us");
    assert!(
        (0.5..2.0).contains(&ready),
        "{ready} times as long to start"
    );
}
