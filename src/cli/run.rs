//! Commands that run, plan, report and tidy.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::args::{CleanArgs, ImportArgs, MatrixArgs, PlanArgs, ReportArgs, RunArgs};
use super::signals::Signals;
use super::{Failure, print_line};
use crate::image::{self, Extra};
use crate::plan;
use crate::progress::{Bars, JsonLines, PlainLines, Progress, Quiet, columns, printable};
use crate::record::manifest::Manifest;
use crate::record::{Folder, Trials};
use crate::report;
use crate::runner::{self, RunEnd, RunError, RunOptions, Stopped, Target};
use crate::runtime::{Engine, ImportRequest};
use crate::spec::{self, Matrix, Override};
use crate::units::counted;

/// Cells and trials that `plan` lists.
const PLAN_ROWS: usize = 40;

pub(super) fn load(args: &MatrixArgs) -> Result<Matrix, Failure> {
    let overrides: Vec<Override> = args.overrides.iter().map(|o| o.as_str().into()).collect();
    let matrix = spec::load(&args.matrix, &overrides).map_err(|error| match error {
        spec::LoadError::Spec(errors) => {
            Failure::rendered(2, errors.render(super::stderr_is_terminal()))
        }
        other => Failure::new(2, other),
    })?;
    if !matrix.warnings.is_empty() {
        let text = matrix.render_warnings(super::stderr_is_terminal());
        let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
    }
    Ok(matrix)
}

pub(super) fn plan(args: &PlanArgs) -> Result<u8, Failure> {
    let matrix = load(&args.matrix)?;
    let plan = plan::build(&matrix);
    if args.json {
        let text =
            serde_json::to_string_pretty(&plan.view(&matrix)).map_err(|e| Failure::new(1, e))?;
        return print_line(&text);
    }
    print_line(plan.text(&matrix, PLAN_ROWS).trim_end())
}

pub(super) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let failed = |e| Failure::new(3, e);
    let folder = Folder::open(&args.results).map_err(failed)?;
    let files = report::rebuild(&folder).map_err(failed)?;
    let trials = folder.trials().map_err(failed)?;
    for notice in &trials.notices {
        say(&format!("notice: {notice}"));
    }
    let manifest = folder.manifest().map_err(failed)?;
    print_line(table(&manifest, &trials).trim_end())?;
    print_line(&format!(
        "\n{} made again in {}",
        counted(files.len(), "file"),
        folder.path().display()
    ))
}

/// The table, as wide as the terminal that shows it.
fn table(manifest: &Manifest, trials: &Trials) -> String {
    let width = columns(std::io::stdout()).unwrap_or(report::table::WIDTH);
    report::table(manifest, &trials.records, width)
}

pub(super) async fn run(args: RunArgs) -> Result<u8, Failure> {
    let matrix = load(&args.matrix)?;
    let target = match (&args.resume, &args.out) {
        (Some(folder), _) => Target::Resume(folder.clone()),
        (None, out) => Target::New(results_folder(out.as_deref(), &matrix.name)),
    };
    let options = RunOptions {
        target,
        wait: args.wait,
        time_budget: args.time_budget,
        retry_invalid: args.retry_invalid,
        overrides: args.matrix.overrides.clone(),
    };
    let progress = progress(&args);
    let cancel = CancellationToken::new();
    let mut signals = Signals::new()?;
    let run = runner::run(&matrix, &options, progress.as_ref(), &cancel);
    tokio::pin!(run);
    let ended = tokio::select! {
        ended = &mut run => ended,
        name = signals.next() => {
            say(&format!("{name}: removing this run's containers; once more gives up waiting"));
            cancel.cancel();
            tokio::select! {
                ended = &mut run => ended,
                name = signals.next() => {
                    return Err(Failure::new(5, format!("{name} again: gave up; `sweep clean` removes what is left")));
                }
            }
        }
    };
    conclude(&args, ended)
}

fn conclude(args: &RunArgs, ended: Result<RunEnd, RunError>) -> Result<u8, Failure> {
    let end = match ended {
        Ok(end) => end,
        Err(RunError::Spec(errors)) => {
            return Err(Failure::rendered(
                2,
                errors.render(super::stderr_is_terminal()),
            ));
        }
        Err(RunError::Cut { folder, error }) => {
            let text = format!("{error}\n{}", go_on(args, &folder));
            return Err(Failure::new(error.exit_code(), text));
        }
        Err(error) => return Err(Failure::new(error.exit_code(), error)),
    };
    if !args.json {
        let failed = |e| Failure::new(3, e);
        let folder = Folder::open(&end.folder).map_err(failed)?;
        let manifest = folder.manifest().map_err(failed)?;
        let trials = folder.trials().map_err(failed)?;
        print_line(table(&manifest, &trials).trim_end())?;
        print_line(&format!("\nresults: {}", end.folder.display()))?;
    }
    match end.stopped {
        Some(why) => {
            let why = match why {
                Stopped::Interrupted => "interrupted",
                Stopped::TimeBudget => "the time budget is used up",
            };
            say(&format!("{why}; {}", go_on(args, &end.folder)));
            Ok(5)
        }
        None => Ok(if end.not_valid > 0 { 4 } else { 0 }),
    }
}

/// How to go on with a run that was cut, as a command to copy.
fn go_on(args: &RunArgs, folder: &Path) -> String {
    let mut command = format!(
        "sweep run {}",
        quoted(&args.matrix.matrix.to_string_lossy())
    );
    // Without them it would be another matrix, and refused.
    for set in &args.matrix.overrides {
        command.push_str(" --set ");
        command.push_str(&quoted(set));
    }
    let folder = quoted(&folder.to_string_lossy());
    format!("finished trials are kept. Go on with: {command} --resume {folder}")
}

/// A word for a shell, harmless for the terminal that shows it.
fn quoted(word: &str) -> String {
    let word = printable(word);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn progress(args: &RunArgs) -> Box<dyn Progress> {
    if args.json {
        Box::new(JsonLines::new(std::io::stdout()))
    } else if args.quiet {
        Box::new(Quiet)
    } else if super::stderr_is_terminal() {
        Box::new(Bars::default())
    } else {
        Box::new(PlainLines::new(std::io::stderr()))
    }
}

/// `{name}`, `{date}` and `{time}` (UTC) filled in.
fn results_folder(template: Option<&str>, name: &str) -> PathBuf {
    let now = jiff::Timestamp::now();
    let date = now.strftime("%Y-%m-%d").to_string();
    let time = now.strftime("%H%M%S").to_string();
    // A name from a matrix must not choose a folder.
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_start_matches('.').to_owned();
    let filled = template
        .unwrap_or("results/{name}-{date}-{time}")
        .replace("{name}", if name.is_empty() { "run" } else { &name })
        .replace("{date}", &date)
        .replace("{time}", &time);
    PathBuf::from(filled)
}

/// A message to the user, beside the results.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", super::harmless(text));
}

pub(super) async fn import(args: ImportArgs) -> Result<u8, Failure> {
    let extra: Vec<Extra> = args
        .extra
        .iter()
        .map(|text| Extra::parse(text))
        .collect::<Result<_, _>>()
        .map_err(|e| Failure::new(2, e))?;
    let bundle = image::bundle(&args.path, &extra).map_err(|e| Failure::new(2, e))?;
    let mut rootfs = Vec::new();
    bundle
        .write_rootfs(&mut rootfs)
        .map_err(|e| Failure::new(3, e))?;
    let engine = Engine::connect().await.map_err(|e| Failure::new(3, e))?;
    let size = rootfs.len();
    let request = ImportRequest {
        name: args.name.clone(),
        rootfs,
        changes: bundle.changes(),
    };
    let facts = engine
        .import(request)
        .await
        .map_err(|e| Failure::new(3, e))?;
    print_line(&format!(
        "{} {} ({} MB)",
        args.name,
        facts.id,
        size / 1_000_000
    ))
}

pub(super) async fn clean(args: CleanArgs) -> Result<u8, Failure> {
    let failed = |e| Failure::new(3, e);
    let engine = Engine::connect().await.map_err(failed)?;
    let mut code = 0;
    let removed = engine.reap().await.map_err(failed)?;
    for container in &removed {
        match &container.error {
            None => print_line(&format!(
                "removed {} of run {}",
                container.name, container.run
            ))?,
            Some(error) => {
                say(&format!("cannot remove {}: {error}", container.name));
                code = 3;
                code
            }
        };
    }
    if args.images {
        for image in engine
            .remove_images_of(crate::tools::REPOSITORY)
            .await
            .map_err(failed)?
        {
            print_line(&format!("removed image {image}"))?;
        }
    }
    for owner in engine.other_live_runs("").await.map_err(failed)? {
        let text = format!(
            "left alone: run {} of process {} on machine {}",
            owner.run, owner.pid, owner.host
        );
        print_line(&text)?;
    }
    if removed.is_empty() {
        print_line("nothing of a dead run is left")?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_go_on_can_be_copied_into_a_shell() {
        assert_eq!(quoted("results/a-1"), "results/a-1");
        assert_eq!(quoted("matrix.cpu=[\"1\"]"), "'matrix.cpu=[\"1\"]'");
        assert_eq!(quoted("it's; rm -rf /"), "'it'\\''s; rm -rf /'");
        assert_eq!(quoted("a\u{1b}[2Jb"), "'a\\u{1b}[2Jb'");
    }

    #[test]
    fn a_matrix_name_cannot_choose_a_folder() {
        let folder = results_folder(None, "../../etc/x y");
        let text = folder.display().to_string();
        assert!(text.starts_with("results/-..-etc-x-y-"), "{text}");
        assert_eq!(folder.components().count(), 2);
        assert_eq!(
            results_folder(Some("a/{name}"), "..").display().to_string(),
            "a/run"
        );
    }
}
