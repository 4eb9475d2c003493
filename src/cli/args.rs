//! Arguments of every command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::spec::settings::PageCache;

/// Measures what CPU, memory and swap limits do to a containerized sidecar proxy.
#[derive(Debug, Parser)]
#[command(name = "sweep", version, about, long_about = LONG_ABOUT, after_help = EXIT_CODES)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const LONG_ABOUT: &str = "\
Measures what CPU, memory and swap limits do to a containerized sidecar proxy.

`sweep run matrix.toml` launches a real proxy and a fixed-delay upstream under every combination of limits, loads the \
proxy, and reports handshake, queue and tail latency as medians with 95 % confidence intervals, with the kernel's \
evidence beside them. It talks to the container engine of DOCKER_HOST, else of the current Docker context, else \
/var/run/docker.sock.";

const EXIT_CODES: &str = "\
Exit codes:
  0  all trials valid              4  finished, with invalid or failed trials
  2  usage or matrix error         5  interrupted; `--resume` goes on
  3  this machine cannot run it    7  another run holds the lock
  1  a bug, please report it";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a sweep and report it
    Run(RunArgs),
    /// Show the cells, the order and the time estimate, and run nothing
    Plan(PlanArgs),
    /// Check a matrix and whether this machine can run it
    Check(CheckArgs),
    /// Rebuild every derived file of a results folder and print the table
    Report(ReportArgs),
    /// Make images without a registry
    Image(ImageArgs),
    /// Remove what dead runs left on the engine
    Clean(CleanArgs),
    /// Load and probes, inside the pod
    #[command(hide = true)]
    Agent {
        /// The job, JSON
        job: PathBuf,
    },
    /// What a container on the engine's host sees, as JSON
    #[command(hide = true)]
    Facts,
    /// Make every file of this container's image warm or cold
    #[command(hide = true)]
    PageCache {
        /// The state wanted
        state: PageCacheState,
    },
    /// The fixed-delay upstream (also a program of its own, `sweep-upstream`)
    #[command(hide = true)]
    Upstream(sweep_upstream::cli::Args),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum PageCacheState {
    Warm,
    Cold,
}

impl From<PageCacheState> for PageCache {
    fn from(state: PageCacheState) -> Self {
        match state {
            PageCacheState::Warm => Self::Warm,
            PageCacheState::Cold => Self::Cold,
        }
    }
}

/// The matrix and what the command line changes in it.
#[derive(Debug, Args)]
pub(super) struct MatrixArgs {
    /// The matrix, a TOML file (docs/matrix.md has every key)
    pub(super) matrix: PathBuf,
    /// Override a setting by its path, e.g. `--set load.rate=500` or `--set 'matrix.cpu=["250m"]'`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) overrides: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sweep run matrix/quick.toml
  sweep run matrix/article.toml --set repetitions=6 --out results/friday
  sweep run matrix/article.toml --resume results/friday
  sweep run matrix/article.toml --resume results/friday --retry-invalid
  sweep run matrix/article.toml --out 'results/{date}' --time-budget 2h --json

Ctrl-C once removes everything, keeps every finished trial and exits with 5.")]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) matrix: MatrixArgs,
    /// Folder for the results; {name}, {date} and {time} are filled in [default: results/{name}-{date}-{time}]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(super) out: Option<String>,
    /// Go on with a run that was cut: finished trials are kept, the others run
    #[arg(long, value_name = "DIR")]
    pub(super) resume: Option<PathBuf>,
    /// With --resume, run invalid trials again too; what they were goes to trials-set-aside.jsonl
    #[arg(long, requires = "resume")]
    pub(super) retry_invalid: bool,
    /// Wait for another sweep on this engine, in place of exiting with 7
    #[arg(long)]
    pub(super) wait: bool,
    /// Begin no trial that would end after this long (`2h`, `90m`), and exit with 5
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) time_budget: Option<std::time::Duration>,
    /// Print only the final table
    #[arg(long, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Print every event as a JSON line on standard output, in place of progress and table
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) matrix: MatrixArgs,
    /// Print JSON: cells, order, seconds, hash of the matrix
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) matrix: MatrixArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The results folder of a run
    pub(super) results: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ImageArgs {
    #[command(subcommand)]
    pub(super) command: ImageCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ImageCommand {
    /// Make an image from an executable of this machine and the shared libraries that it needs
    Import(ImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sweep image import --name sweep-envoy:1.40.0 ./envoy
  sweep image import --name my-nginx:1 /usr/sbin/nginx --add /etc/nginx/mime.types=/etc/nginx/mime.types")]
pub(super) struct ImportArgs {
    /// Name of the image, `name:tag`
    #[arg(long)]
    pub(super) name: String,
    /// The executable
    pub(super) path: PathBuf,
    /// A further file for the image, `SOURCE=/path/in/image`
    #[arg(long = "add", value_name = "SOURCE=TARGET")]
    pub(super) extra: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct CleanArgs {
    /// Also remove the images that sweep made of itself (they are made again when needed)
    #[arg(long)]
    pub(super) images: bool,
}
