//! The server's threads, each with an event loop of its own.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::error::ServeError;

/// Threads that run until they are stopped, and what made one fail.
#[derive(Debug)]
pub(crate) struct Threads {
    stop: watch::Sender<bool>,
    handles: Vec<JoinHandle<()>>,
    failed: UnboundedSender<ServeError>,
    failures: UnboundedReceiver<ServeError>,
}

impl Threads {
    /// None yet.
    pub(crate) fn new() -> Self {
        let (failed, failures) = unbounded_channel();
        Self {
            stop: watch::Sender::new(false),
            handles: Vec::new(),
            failed,
            failures,
        }
    }

    /// Runs a task that never ends by itself on a thread and event loop of its own, until the server stops.
    pub(crate) fn start<T, F>(&mut self, name: &str, task: T) -> Result<(), ServeError>
    where
        T: FnOnce() -> F + Send + 'static,
        F: Future<Output = io::Result<Infallible>>,
    {
        let thread = name.to_owned();
        let (stopped, failed) = (self.stop.subscribe(), self.failed.clone());
        let failure = |thread, source| ServeError::Thread { thread, source };
        let builder = std::thread::Builder::new().name(thread.clone());
        let handle = builder
            .spawn(move || {
                if let Err(source) = run_until_stopped(stopped, task) {
                    // Without a receiver the server is gone already.
                    let _ = failed.send(failure(thread, source));
                }
            })
            .map_err(|source| failure(name.to_owned(), source))?;
        self.handles.push(handle);
        Ok(())
    }

    /// The first failure, when there is one.
    pub(crate) async fn failure(&mut self) -> ServeError {
        match self.failures.recv().await {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Stops them all at once and waits for their end.
    pub(crate) fn stop(&mut self) {
        self.stop.send_replace(true);
        for handle in self.handles.drain(..) {
            // A panicked thread has said so on standard error.
            let _ = handle.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run_until_stopped<T, F>(mut stopped: watch::Receiver<bool>, task: T) -> io::Result<()>
where
    T: FnOnce() -> F,
    F: Future<Output = io::Result<Infallible>>,
{
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        tokio::select! {
            ended = task() => ended.map(|never| match never {}),
            _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
        }
    })
}
