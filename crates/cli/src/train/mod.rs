//! `train …`: single phases.

mod args;
mod wake;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dataset::FRAGMENT_LENGTH;
use experiments::amortizer_phase::{Teacher, train_amortizer};
use experiments::cycle::settings::CycleSettings;
use experiments::run::{Launch, write_json};
use experiments::scores::Scores;
use experiments::summary::{self, Row};
use experiments::world_model_phase::train_world_model;
use experiments::{AmortizerSettings, FeatureChoice, Prepared, Source, WorldModelSettings, resolve};
use models::DeviceChoice;
use models::training::distributed::{Environment, Transport, connect};
use models::training::{Outcome, Progress, Summary};
use serde_json::json;

use self::args::{AmortizerArgs, PhaseArgs, WorldModelArgs};
pub(crate) use self::args::{ComputeArgs, FeatureArgs, HowArgs, SourceArgs, TrainCommand, of_sections};
pub(crate) use self::watch::{Stages, filling, stop_flag, training};
use crate::args::KeyArgs;
use crate::data::overrides;
use crate::failure::{Failure, Problem};
use crate::table::{Align, table};
use crate::{features, files};

/// The scores of a finished run, in its directory.
const EVALUATION: &str = "evaluation.json";

/// Runs one of the commands.
pub(crate) fn run(command: &TrainCommand) -> Result<(), Failure> {
    match command {
        TrainCommand::WorldModel(options) => world_model(options),
        TrainCommand::Amortizer(options) => amortizer(options),
        TrainCommand::Wake(options) => wake::run(options),
    }
}

fn world_model(WorldModelArgs { phase }: &WorldModelArgs) -> Result<(), Failure> {
    let settings: WorldModelSettings = resolve(&phase.preset, &phase.how.sets)?;
    let place = Place::open(phase)?;
    let prepared = prepared(&phase.data, &phase.keys, settings.model.horizon)?;
    let outcome = watch::training("world model", settings.train.steps, |progress| {
        train_world_model(&prepared, &settings, place.launch(phase, progress))
    })?;
    finish(phase, &place, outcome, || summary::world_model_rows(&prepared, &phase.out, &place.device))
}

fn amortizer(options: &AmortizerArgs) -> Result<(), Failure> {
    let phase = &options.phase;
    let mut settings: AmortizerSettings = resolve(&phase.preset, &phase.how.sets)?;
    settings.model.vision |= options.vision;
    let place = Place::open(phase)?;
    let prepared = prepared(&phase.data, &phase.keys, settings.model.horizon)?;
    // The distances to learn are those by which the loop compares segments.
    let cycle: CycleSettings = resolve(&phase.preset, &[])?;
    let load = |run| Ok::<_, Failure>(Teacher::load(run, &place.device)?.with_distances(&cycle));
    let teacher = options.teacher.as_deref().map(load).transpose()?;
    let outcome = watch::training("amortizer", settings.train.steps, |progress| {
        train_amortizer(&prepared, &settings, teacher.as_ref(), place.launch(phase, progress))
    })?;
    finish(phase, &place, outcome, || summary::amortizer_rows(&prepared, &phase.out, &place.device))
}

/// Where a phase runs.
struct Place {
    device: experiments::Device,
    transport: Arc<dyn Transport>,
    stop: &'static AtomicBool,
}

impl Place {
    fn open(phase: &PhaseArgs) -> Result<Place, Failure> {
        let environment = Environment::from_process()?;
        let several = environment.as_ref().filter(|environment| environment.world > 1);
        let device = match (several, phase.how.compute.device) {
            (Some(environment), DeviceChoice::Auto) if cfg!(feature = "cuda") => {
                DeviceChoice::Cuda(environment.local_rank).open()?
            }
            (_, device) => device.open()?,
        };
        let transport = connect(environment.as_ref(), &device)?;
        Ok(Place { device, transport, stop: stop_flag()? })
    }

    fn launch<'a>(&'a self, phase: &'a PhaseArgs, progress: &'a mut dyn FnMut(&Progress)) -> Launch<'a> {
        Launch {
            run: &phase.out,
            resume: phase.how.resume,
            preset: &phase.preset,
            seed: phase.how.seed,
            device: &self.device,
            transport: self.transport.clone(),
            progress,
            stop: Some(self.stop),
        }
    }
}

/// Opens a dataset, finds its features, splits it.
pub(crate) fn prepared(source: &SourceArgs, keys: &KeyArgs, horizon: usize) -> Result<Prepared, Failure> {
    let opened = open_source(&source.dataset, &source.features, keys)?;
    Ok(Prepared::new(opened, source.features.hold_out.map(std::num::NonZeroUsize::get), horizon.min(FRAGMENT_LENGTH))?)
}

/// Opens a dataset and finds its features.
pub(crate) fn open_source(dataset: &str, options: &FeatureArgs, keys: &KeyArgs) -> Result<Source, Failure> {
    let cache = options.features.clone().or_else(|| features::default_cache().ok());
    let choice = FeatureChoice { encoder: options.encoder.clone(), cache };
    Ok(filling(|progress| Source::open(dataset, &overrides(keys), &choice, progress))?)
}

/// Tells how a run ended, and how good its result is.
fn finish(
    phase: &PhaseArgs,
    place: &Place,
    outcome: Outcome,
    rows: impl FnOnce() -> experiments::Result<Vec<Row>>,
) -> Result<(), Failure> {
    let summary = match outcome {
        Outcome::Stopped(Summary { step, .. }) => {
            return Err(Problem::new(format!("stopped at step {step}, with a checkpoint"))
                .fact("run", phase.out.display())
                .hint("the same command with `--resume` goes on where it stopped")
                .into());
        }
        Outcome::Finished(summary) => summary,
    };
    watch::warn(&summary.warnings);
    if place.transport.rank() > 0 {
        return Ok(());
    }
    let rows = rows()?;
    write_json(&phase.out.join(EVALUATION), &rows)?;
    if phase.how.compute.json {
        let value = json!({
            "run": phase.out,
            "model": summary.model,
            "step": summary.step,
            "loss": summary.loss,
            "evaluation": rows,
        });
        return files::print(&files::json_bytes(&value)?);
    }
    let named: Vec<(&str, &Scores)> = rows.iter().map(|row| (row.vectors.as_str(), &row.scores)).collect();
    let text = format!("{}\n{}", made(summary.model.as_deref(), summary.step), scores_table("vectors", &named));
    files::print(text.as_bytes())
}

fn made(model: Option<&Path>, step: u64) -> String {
    let model = model.map(files::shown).unwrap_or_default();
    format!("{model} after {step} steps; held-out fragments, clustered:\n")
}

/// Rows of scores under their headings.
pub(crate) fn scores_table(heading: &str, rows: &[(&str, &Scores)]) -> String {
    let columns = [
        (heading, Align::Left),
        ("NMI task", Align::Right),
        ("NMI phase", Align::Right),
        ("ARI task", Align::Right),
        ("purity", Align::Right),
        ("boundary F1", Align::Right),
        ("silhouette", Align::Right),
        ("HDBSCAN", Align::Right),
        ("NMI task", Align::Right),
        ("NMI phase", Align::Right),
    ];
    let number = |value: f64| format!("{value:.3}");
    let maybe = |value: Option<f64>| value.map_or("-".to_owned(), number);
    let row = |(name, Scores { kmeans, hdbscan, .. }): &(&str, &Scores)| {
        vec![
            (*name).to_owned(),
            number(kmeans.task.nmi),
            maybe(kmeans.phase.map(|phase| phase.nmi)),
            number(kmeans.task.ari),
            number(kmeans.task.purity),
            maybe(kmeans.boundary_f1),
            maybe(kmeans.silhouette),
            hdbscan.clusters.to_string(),
            number(hdbscan.task.nmi),
            maybe(hdbscan.phase.map(|phase| phase.nmi)),
        ]
    };
    table(&columns, &rows.iter().map(row).collect::<Vec<_>>())
}
