//! A second engine beside the machine's own, to be stopped, frozen and started again without harm to anybody.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{ENVOY, wait_until};

/// An engine with overlay2, whose containers share page cache: what a user's machine has. It is in a network namespace
/// of its own, or it would delete docker0.
pub(crate) struct Daemon {
    process: Child,
    folder: TempDir,
}

impl Daemon {
    /// With the image of the proxy under test.
    pub(crate) fn start() -> Self {
        // Not in /tmp, which may be a tmpfs: overlay2 wants a real file system below it.
        let folder = tempfile::tempdir_in("/var/lib").expect("a folder; this test needs root");
        fs_err::write(folder.path().join("empty.json"), "{}").expect("write");
        let process = spawn(&folder);
        let daemon = Self { process, folder };
        daemon.wait_until_it_answers();
        daemon.load_envoy();
        daemon
    }

    /// For DOCKER_HOST.
    pub(crate) fn host(&self) -> String {
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

    /// Names of all of its containers.
    pub(crate) fn containers(&self) -> String {
        let output = self
            .docker(&["ps", "-a", "--format", "{{.Names}}"])
            .output()
            .expect("docker");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends it in order, as `systemctl stop docker` does: its containers end too.
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        self.process.wait().expect("wait");
    }

    /// Starts it again after [`Daemon::stop`].
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.folder);
        self.wait_until_it_answers();
    }

    /// Lets it keep every connection and answer none.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Ends [`Daemon::freeze`].
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill").success());
    }

    fn wait_until_it_answers(&self) {
        let log = || fs_err::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        wait_until("the second engine answers", Duration::from_secs(60), || {
            let answer = self.docker(&["version"]).output().expect("docker");
            let ended = !fs_err::exists(format!("/proc/{}/exe", self.process.id())).unwrap_or(true);
            assert!(!ended, "the second engine ended: {}", log());
            answer.status.success()
        });
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
}

fn spawn(folder: &TempDir) -> Child {
    let path = |name: &str| folder.path().join(name);
    let log = fs_err::File::create(path("log"))
        .expect("create")
        .into_parts()
        .0;
    // `unshare` becomes dockerd, so the child is the engine itself.
    Command::new("unshare")
        .args(["--net", "dockerd", "--storage-driver", "overlay2"])
        .args(["--bridge", "none", "--iptables=false"])
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
        .expect("start dockerd")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            // A frozen one would never see the other.
            self.signal("CONT");
            self.signal("TERM");
            let _ = self.process.wait();
        }
    }
}
