//! A container engine by its command line: independent of the engine client that is under test.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A name that no other test, process or run uses.
pub(crate) fn unique(what: &str) -> String {
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("sweep-test-{what}-{}-{count}", std::process::id())
}

/// Runs `docker` with `input` on its standard input.
pub(crate) fn docker_with(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new("docker")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("docker's command line is installed (`make test` installs it on Debian)");
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        // A child that ends early closes its input; its exit code tells.
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().expect("docker ends")
    })
}

/// Runs `docker` and returns what it printed; panics with its complaint when it fails.
pub(crate) fn docker(args: &[&str]) -> String {
    succeeded(args, docker_with(args, &[]))
}

/// What a successful command printed.
pub(crate) fn succeeded(what: &[&str], output: Output) -> String {
    assert!(
        output.status.success(),
        "docker {what:?}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// An image that is removed when the test ends, however it ends.
pub(crate) struct Image(pub(crate) String);

impl Image {
    /// Imports a root filesystem.
    pub(crate) fn import(what: &str, rootfs: &[u8], changes: &[String]) -> Self {
        let image = Self(unique(what));
        let mut args = vec!["import"];
        for change in changes {
            args.extend(["--change", change]);
        }
        args.extend(["-", &image.0]);
        succeeded(&args, docker_with(&args, rootfs));
        image
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        docker_with(&["image", "rm", "--force", &self.0], &[]);
    }
}

/// A container that is removed when the test ends, however it ends.
pub(crate) struct Container(pub(crate) String);

impl Container {
    /// `docker create` with a unique name.
    pub(crate) fn create(what: &str, args: &[&str]) -> Self {
        let container = Self(unique(what));
        let mut all = vec!["create", "--name", &container.0];
        all.extend(args);
        docker(&all);
        container
    }

    /// Unpacks an archive at its root.
    pub(crate) fn upload(&self, archive: &[u8]) {
        let target = format!("{}:/", self.0);
        let args = ["cp", "-", &target];
        succeeded(&args, docker_with(&args, archive));
    }

    /// Standard output and error so far.
    pub(crate) fn logs(&self) -> String {
        let output = docker_with(&["logs", &self.0], &[]);
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        docker_with(&["rm", "--force", &self.0], &[]);
    }
}
