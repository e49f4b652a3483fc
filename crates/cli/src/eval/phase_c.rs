//! `eval phase-c`: the matrix, in this process or in several. `eval matrix` is its successor, with intervals over episodes
//! and the paper's values; this one is kept for directories that it has begun, and for `--jobs`.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use experiments::matrix::{CellResult, Mode, Plan, matrix};
use experiments::run_dir::{write_json, write_text};
use experiments::scores::Scores;
use experiments::settings::{Settings, by_section};
use experiments::{AmortizerSettings, Prepared, WorldModelSettings, resolve};

use super::args::PhaseCArgs;
use crate::failure::{Failure, Problem};
use crate::train::{note, open_source, split, stop_flag, training};
use crate::{files, launch};

/// How often children are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Runs what is missing, and prints the table of all there is.
pub(crate) fn run(options: &PhaseCArgs) -> Result<(), Failure> {
    let sets = by_section(&options.sets, &[WorldModelSettings::SECTION, AmortizerSettings::SECTION])?;
    let world_model: WorldModelSettings = resolve(&options.preset, &sets[0])?;
    let amortizer: AmortizerSettings = resolve(&options.preset, &sets[1])?;
    let stop = stop_flag()?;
    let device = options.compute.device.open()?;
    let plan = Plan {
        out: &options.out,
        world_model: &world_model,
        amortizer: &amortizer,
        preset: &options.preset,
        device: &device,
        stop: Some(stop),
    };
    let open = |dataset: &str| -> Result<Prepared, Failure> {
        let source = open_source(dataset, &options.features, &options.keys)?;
        split(source, &options.features, world_model.model.horizon)
    };
    if let Some(cell) = &options.cell {
        stop_with_parent(stop);
        let (mode, seed) = parsed_cell(cell)?;
        let prepared = open(options.dataset.first().map_or("", String::as_str))?;
        return watched(&plan, &prepared, mode, seed)?.map(drop).ok_or_else(stopped);
    }
    note(&["`eval phase-c` is now `eval matrix DATASET… --out DIR`, which also has the paper's values, intervals over episodes and a \
            figure; this spelling goes on with directories that it has begun"
        .to_owned()]);
    let modes = if options.modes.is_empty() { Mode::ALL.to_vec() } else { options.modes.clone() };
    let (mut raw, mut cells, mut wanted) = (Vec::<(String, Scores)>::new(), Vec::new(), VecDeque::new());
    let mut datasets = Vec::new();
    for written in &options.dataset {
        let prepared = open(written)?;
        note(&prepared.notes);
        raw.push((prepared.source.name.clone(), plan.raw(&prepared)?));
        for (mode, seed) in modes.iter().flat_map(|mode| (0..options.seeds).map(move |seed| (*mode, seed))) {
            wanted.push_back(Cell { dataset: datasets.len(), mode, seed });
        }
        datasets.push((written.as_str(), prepared));
    }
    if options.jobs > 1 {
        in_children(options, &plan, &datasets, wanted.clone(), stop)?;
    }
    for Cell { dataset, mode, seed } in wanted {
        cells.push(watched(&plan, &datasets[dataset].1, mode, seed)?.ok_or_else(stopped)?);
    }
    let matrix = matrix(&raw, cells)?;
    write_json(&options.out.join("results.json"), &matrix)?;
    write_text(&options.out.join("table.md"), matrix.markdown().as_bytes())?;
    match options.compute.json {
        true => files::print(&files::json_bytes(&matrix)?),
        false => files::print(matrix.markdown().as_bytes()),
    }
}

/// One cell of the matrix; `dataset` is its place among those that were given.
#[derive(Clone, Copy, Debug)]
struct Cell {
    dataset: usize,
    mode: Mode,
    seed: u64,
}

/// Runs a cell with a bar.
fn watched(plan: &Plan<'_>, prepared: &Prepared, mode: Mode, seed: u64) -> Result<Option<CellResult>, Failure> {
    let what = format!("{} {mode} seed {seed}", prepared.source.name);
    Ok(training(&what, plan.world_model.train.steps, |progress| {
        plan.run(prepared, mode, seed, &mut |_, told| progress(told))
    })?)
}

/// Runs what is missing in processes of this program. Their results are files, which the caller then finds.
fn in_children(
    options: &PhaseCArgs,
    plan: &Plan<'_>,
    datasets: &[(&str, Prepared)],
    mut wanted: VecDeque<Cell>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut running = Children::default();
    let mut failed = Vec::new();
    while !wanted.is_empty() || !running.0.is_empty() {
        if stop.load(Ordering::Relaxed) {
            wanted.clear();
            running.ask_to_stop();
        }
        while running.0.len() < usize::from(options.jobs) {
            let Some(Cell { dataset, mode, seed }) = wanted.pop_front() else { break };
            let (written, prepared) = &datasets[dataset];
            if plan.result(&prepared.source.name, mode, seed)?.is_some() {
                continue;
            }
            let again = launch::again();
            let mut command = again.map_err(|error| Problem::new(format!("cannot find this program: {error}")))?;
            command.args(repeated(written, &format!("{mode}:{seed}"))).stdin(Stdio::piped()).stdout(Stdio::null());
            let child = command.spawn().map_err(|error| Problem::new(format!("cannot start a process: {error}")))?;
            running.0.push((format!("{} {mode} seed {seed}", prepared.source.name), child));
        }
        running.0.retain_mut(|(name, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                failed.extend((!status.success()).then(|| format!("{name}: {status}")));
                false
            }
            Err(error) => {
                failed.push(format!("{name}: {error}"));
                false
            }
        });
        std::thread::sleep(LOOK);
    }
    match (stop.load(Ordering::Relaxed), failed.is_empty()) {
        (true, _) => Err(stopped()),
        (false, true) => Ok(()),
        (false, false) => Err(Problem::new("some cells failed; what they said is above")
            .list(failed)
            .hint("the same command runs those that are missing; `--jobs 1` runs them one by one")
            .into()),
    }
}

/// Processes that run cells. Their standard input is a pipe that nothing is written to: its end tells them to stop, and it
/// ends with this process too, however that ends.
#[derive(Default)]
struct Children(Vec<(String, Child)>);

impl Children {
    /// They write a checkpoint and end.
    fn ask_to_stop(&mut self) {
        self.0.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
    }
}

impl Drop for Children {
    /// Those that are left when something else has failed: nobody would wait for them.
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sets the flag once the process that started this one is gone or wants it to stop.
fn stop_with_parent(stop: &'static AtomicBool) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
}

/// This command's own arguments, for one dataset and one cell.
fn repeated(dataset: &str, cell: &str) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut given = launch::words().into_iter();
    while let Some(argument) = given.next() {
        match argument.to_str() {
            Some("--dataset") => drop(given.next()),
            Some("--json") => {}
            Some(text) if text.starts_with("--dataset=") => {}
            _ => kept.push(argument),
        }
    }
    kept.extend(["--dataset", dataset, "--cell", cell].map(OsString::from));
    kept
}

fn parsed_cell(text: &str) -> Result<(Mode, u64), Failure> {
    let parts = text.split_once(':').and_then(|(mode, seed)| Some((mode.parse().ok()?, seed.parse().ok()?)));
    parts.ok_or_else(|| Problem::new(format!("`{text}` is no cell; wanted `MODE:SEED`")).into())
}

fn stopped() -> Failure {
    Problem::new("stopped; finished cells and checkpoints are kept").hint("the same command goes on").into()
}
