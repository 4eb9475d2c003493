//! Why a run could not be made, with the exit code that tells a script.

use std::path::PathBuf;

use crate::certs::CertError;
use crate::record::{Folder, RecordError};
use crate::runtime::EngineError;
use crate::spec::SpecErrors;

/// A run that could not be made or finished.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The matrix asks for what cannot be.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The engine, or an image.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The results folder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run's certificates.
    #[error(transparent)]
    Certificates(#[from] CertError),
    /// The environment cannot run this matrix; each line is one reason with its remedy.
    #[error("this machine cannot run the matrix:\n  {}", .0.join("\n  "))]
    Environment(Vec<String>),
    /// The folder was made by something else than what is to be resumed.
    #[error("cannot resume: {0}; start a new run, or go back to what the folder was made with")]
    ResumeMismatch(String),
    /// Another sweep uses the engine.
    #[error(
        "another sweep uses this engine: {0}; two at once disturb each other. Wait for it with --wait"
    )]
    Busy(String),
    /// The engine stayed away for too long.
    #[error("{0}")]
    EngineGone(String),
    /// A signal came before the first trial.
    #[error("interrupted before a trial began")]
    Interrupted,
    /// A panic. Its place is in what the panic itself printed.
    #[error("a bug in sweep, please report it: {0}")]
    Bug(String),
    /// The run was cut after its results folder had been made, and can be gone on with.
    #[error("{error}")]
    Cut {
        /// The results folder.
        folder: PathBuf,
        /// What cut it.
        error: Box<RunError>,
    },
}

impl RunError {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Spec(_) | Self::ResumeMismatch(_) => 2,
            Self::Engine(_)
            | Self::Environment(_)
            | Self::EngineGone(_)
            | Self::Certificates(_) => 3,
            Self::Record(RecordError::Locked { .. }) | Self::Busy(_) => 7,
            Self::Record(_) => 3,
            Self::Interrupted => 5,
            Self::Bug(_) => 1,
            Self::Cut { error, .. } => error.exit_code(),
        }
    }

    /// As the cut of a run whose results are in `folder`, if going on there could help.
    pub(super) fn cut_in(self, folder: &Folder) -> Self {
        let resumable = match &self {
            Self::Engine(_)
            | Self::EngineGone(_)
            | Self::Record(RecordError::Io(_))
            | Self::Interrupted
            | Self::Bug(_) => Folder::open(folder.path()).is_ok(),
            _ => false,
        };
        if resumable {
            Self::Cut {
                folder: folder.path().to_owned(),
                error: Box::new(self),
            }
        } else {
            self
        }
    }
}
