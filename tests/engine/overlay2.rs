//! The same trials on an engine with overlay2, whose containers share page cache: what a user's machine has.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sweep::record::trial::{FailureKind, TrialRecord};
use sweep::spec::settings::PageCache;
use tempfile::TempDir;

use crate::support::{Bench, ENVOY, assert_code, assert_measured, exit_code_for, matrix};

/// A second engine beside the machine's own, in a network namespace of its own (or it would delete docker0).
pub(crate) struct Engine {
    daemon: Child,
    folder: TempDir,
}

impl Engine {
    pub(crate) fn start() -> Self {
        // Not in /tmp, which may be a tmpfs: overlay2 wants a real file system below it.
        let folder = tempfile::tempdir_in("/var/lib").expect("a folder; this test needs root");
        let path = |name: &str| folder.path().join(name);
        fs_err::write(path("empty.json"), "{}").expect("write");
        let log = fs_err::File::create(path("log"))
            .expect("create")
            .into_parts()
            .0;
        let daemon = Command::new("unshare")
            .args([
                "--net",
                "dockerd",
                "--storage-driver",
                "overlay2",
                "--bridge",
                "none",
                "--iptables=false",
            ])
            .arg("--data-root")
            .arg(path("data"))
            .arg("--exec-root")
            .arg(path("exec"))
            .arg("--pidfile")
            .arg(path("pid"))
            .arg("--config-file")
            .arg(path("empty.json"))
            .arg("-H")
            .arg(format!("unix://{}", path("sock").display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("clone"))
            .stderr(log)
            .spawn()
            .expect("start dockerd");
        let engine = Self { daemon, folder };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !engine
            .docker(&["version"])
            .output()
            .expect("docker")
            .status
            .success()
        {
            assert!(
                Instant::now() < deadline,
                "no second engine: {}",
                fs_err::read_to_string(engine.folder.path().join("log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        engine.load_envoy();
        engine
    }

    fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("sock").display())
    }

    /// Where its images' files lie, a folder for each layer.
    pub(crate) fn layers(&self) -> PathBuf {
        self.folder.path().join("data/overlay2")
    }

    fn docker(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.env("DOCKER_HOST", self.host()).args(args);
        command
    }

    fn load_envoy(&self) {
        let saved = Command::new("docker")
            .args(["save", ENVOY])
            .output()
            .expect("docker save");
        assert!(
            saved.status.success(),
            "{}",
            String::from_utf8_lossy(&saved.stderr)
        );
        let mut load = self
            .docker(&["load"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("docker load");
        load.stdin
            .take()
            .expect("piped")
            .write_all(&saved.stdout)
            .expect("write");
        assert!(load.wait().expect("wait").success());
    }

    pub(crate) fn run(&self, bench: &Bench) -> Vec<TrialRecord> {
        let output = bench
            .command(&["run", "matrix.toml", "--out", "out"])
            .env("DOCKER_HOST", self.host())
            .output()
            .expect("start sweep");
        let trials = bench.trials();
        assert_code(&output, exit_code_for(&trials));
        trials
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = fs_err::read_to_string(self.folder.path().join("pid")).unwrap_or_default();
        let _ = Command::new("kill").arg(pid.trim()).status();
        let _ = self.daemon.wait();
    }
}

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
    let engine = Engine::start();
    let trials = engine.run(&bench);
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
        Bench::new(&matrix(1, "memory = [\"8Mi\", \"64Mi\"]", ""))
    };
    let trials = engine.run(&bench);
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
