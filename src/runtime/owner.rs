//! Who owns a container. Everything that `sweep` creates carries its owner in labels, and only what a dead owner left is
//! ever removed: never by name, and never because a label merely exists.

use std::collections::HashMap;

use super::container::Role;
use super::engine::Engine;
use super::error::EngineError;

const RUN: &str = "sweep.run";
const ROLE: &str = "sweep.role";
const HOST: &str = "sweep.host";
const BOOT: &str = "sweep.boot";
const PID: &str = "sweep.pid";
const PID_START: &str = "sweep.pid_start";

/// A process that owns containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Id of the run.
    pub run: String,
    /// Machine id (or host name) of the controller.
    pub host: String,
    /// Boot id of the controller's kernel; a pid means nothing after a reboot.
    pub boot: String,
    /// Process id.
    pub pid: u32,
    /// Start time of the process in clock ticks since boot; a pid is used again.
    pub pid_start: String,
}

/// What is known of a container's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// It runs.
    Alive,
    /// It ran on this machine and does not any more.
    Dead,
    /// Another machine's, or not to be told: hands off.
    Unknown,
}

/// A container that was removed, or could not be.
#[derive(Debug, Clone)]
pub struct Removed {
    /// Name.
    pub name: String,
    /// Run that it belonged to.
    pub run: String,
    /// Why it could not be removed.
    pub error: Option<String>,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn current(run: &str) -> Self {
        let pid = std::process::id();
        Self {
            run: run.to_owned(),
            host: machine_id(),
            boot: boot_id(),
            pid,
            pid_start: process_start(pid).unwrap_or_default(),
        }
    }

    pub(super) fn labels(&self, role: Role) -> HashMap<String, String> {
        [
            (RUN, self.run.as_str()),
            (ROLE, role.as_str()),
            (HOST, &self.host),
            (BOOT, &self.boot),
            (PID, &self.pid.to_string()),
            (PID_START, &self.pid_start),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
    }

    fn from_labels(labels: &HashMap<String, String>) -> Option<Self> {
        let get = |key: &str| labels.get(key).filter(|v| !v.is_empty()).cloned();
        Some(Self {
            run: get(RUN)?,
            host: get(HOST)?,
            boot: get(BOOT)?,
            pid: get(PID)?.parse().ok()?,
            pid_start: get(PID_START)?,
        })
    }
}

/// Judges an owner, given this machine's identity and a way to ask for a process's start time.
#[must_use]
pub fn owner_state(
    owner: Option<&Owner>,
    host: &str,
    boot: &str,
    start_of: &dyn Fn(u32) -> Option<String>,
) -> Ownership {
    match owner {
        Some(owner) if !host.is_empty() && owner.host == host => {
            if owner.boot == boot
                && start_of(owner.pid).as_deref() == Some(owner.pid_start.as_str())
            {
                Ownership::Alive
            } else {
                Ownership::Dead
            }
        }
        _ => Ownership::Unknown,
    }
}

impl Engine {
    /// Removes every container whose owner is dead, and tells which.
    ///
    /// # Errors
    /// When the containers cannot be listed.
    pub async fn reap(&self) -> Result<Vec<Removed>, EngineError> {
        let (host, boot) = (machine_id(), boot_id());
        let mut removed = Vec::new();
        for (id, name, labels) in self.labelled(RUN).await? {
            let owner = Owner::from_labels(&labels);
            if owner_state(owner.as_ref(), &host, &boot, &process_start) == Ownership::Dead {
                let error = self.remove(&id).await.err().map(|e| e.to_string());
                removed.push(Removed {
                    name,
                    run: owner.map(|o| o.run).unwrap_or_default(),
                    error,
                });
            }
        }
        Ok(removed)
    }

    /// Removes every container of one run of this process.
    ///
    /// # Errors
    /// When the containers cannot be listed; failed removals are in the answer.
    pub async fn remove_run(&self, run: &str) -> Result<Vec<Removed>, EngineError> {
        let _none_in_flight = self.creating.write().await;
        let list = self.labelled(&format!("{RUN}={run}")).await?;
        let removals = list.into_iter().map(|(id, name, _)| async move {
            let error = self.remove(&id).await.err().map(|e| e.to_string());
            Removed {
                name,
                run: run.to_owned(),
                error,
            }
        });
        Ok(futures_util::future::join_all(removals).await)
    }

    /// Runs whose owner is alive and is not this process: another sweep on this engine.
    ///
    /// # Errors
    /// When the containers cannot be listed.
    pub async fn other_live_runs(&self, own_run: &str) -> Result<Vec<Owner>, EngineError> {
        let (host, boot) = (machine_id(), boot_id());
        let mut owners: Vec<Owner> = Vec::new();
        for (_, _, labels) in self.labelled(RUN).await? {
            if let Some(owner) = Owner::from_labels(&labels)
                && owner.run != own_run
                && owner_state(Some(&owner), &host, &boot, &process_start) != Ownership::Dead
                && !owners.iter().any(|o| o.run == owner.run)
            {
                owners.push(owner);
            }
        }
        Ok(owners)
    }
}

fn machine_id() -> String {
    fs_err::read_to_string("/etc/machine-id")
        .ok()
        .map(|t| t.trim().to_owned())
        .filter(|t| !t.is_empty())
        .unwrap_or_else(|| {
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned()
        })
}

fn boot_id() -> String {
    fs_err::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|t| t.trim().to_owned())
        .unwrap_or_default()
}

/// Start time of a process in clock ticks since boot, the 22nd field of its stat file; `None` if it is gone or dying.
fn process_start(pid: u32) -> Option<String> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything, so count from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X")
        .then(|| fields.nth(18).map(str::to_owned))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dead_owner_of_this_machine_is_dead() {
        let me = Owner::current("r");
        assert!(!me.pid_start.is_empty());
        let state = |owner: Option<&Owner>| owner_state(owner, &me.host, &me.boot, &process_start);
        assert_eq!(state(Some(&me)), Ownership::Alive);
        assert_eq!(
            state(Some(&Owner {
                pid_start: "1".to_owned(),
                ..me.clone()
            })),
            Ownership::Dead
        );
        assert_eq!(
            state(Some(&Owner {
                boot: "other".to_owned(),
                ..me.clone()
            })),
            Ownership::Dead
        );
        assert_eq!(
            state(Some(&Owner {
                host: "elsewhere".to_owned(),
                ..me.clone()
            })),
            Ownership::Unknown
        );
        assert_eq!(state(None), Ownership::Unknown);
    }

    #[test]
    fn labels_carry_the_owner() {
        let me = Owner::current("run-1");
        assert_eq!(Owner::from_labels(&me.labels(Role::Proxy)), Some(me));
        assert_eq!(
            Owner::from_labels(&HashMap::from([(RUN.to_owned(), "x".to_owned())])),
            None
        );
    }
}
