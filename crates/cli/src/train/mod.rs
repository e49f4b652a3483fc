//! `train …`: single phases.

mod args;
pub(crate) mod place;
mod wake;
pub(crate) mod watch;

use std::path::{Path, PathBuf};

use dataset::FRAGMENT_LENGTH;
use experiments::amortizer_phase::Teacher;
use experiments::briefing::phase_briefing;
use experiments::cycle::settings::CycleSettings;
use experiments::cycle::{Event, phases};
use experiments::run_dir::write_json;
use experiments::scores::Scores;
use experiments::settings::Settings as _;
use experiments::summary::{self, Row};
use experiments::{AmortizerSettings, FeatureChoice, Prepared, Source, WorldModelSettings, resolve};
use models::training::checkpoint::MODEL;
use serde_json::json;

use self::args::{AmortizerArgs, PhaseArgs, WorldModelArgs};
pub(crate) use self::args::{ComputeArgs, FeatureArgs, HowArgs, PresetArgs, SourceArgs, TrainCommand, of_sections};
pub(crate) use self::place::Place;
use self::watch::Stages;
pub(crate) use self::watch::{brief, filling, note, stop_flag, training, warn};
use crate::args::KeyArgs;
use crate::data::overrides;
use crate::failure::{Failure, Problem};
use crate::table::{Align, table};
use crate::{features, files};

/// The scores of a trained model, in its directory.
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
    let preset = &phase.presets.joined();
    let settings: WorldModelSettings = resolve(preset, &rooted(phase, WorldModelSettings::SECTION))?;
    let place = Place::open(&phase.how.compute)?;
    let prepared = briefed(&phase.data(), &phase.keys, settings.model.horizon, &place)?;
    let trained = watched(|observer| {
        let options = place.options(&phase.out, preset, &phase.how, String::new(), observer);
        phases::world_model(&prepared, &settings, options)
    })?;
    finish(phase, &place, trained, |run| summary::world_model_rows(&prepared, run, &place.device))
}

fn amortizer(options: &AmortizerArgs) -> Result<(), Failure> {
    let phase = &options.phase;
    let preset = &phase.presets.joined();
    let mut settings: AmortizerSettings = resolve(preset, &rooted(phase, AmortizerSettings::SECTION))?;
    settings.model.vision |= options.vision;
    let place = Place::open(&phase.how.compute)?;
    let prepared = briefed(&phase.data(), &phase.keys, settings.model.horizon, &place)?;
    // The distances to learn are those by which the loop compares segments.
    let cycle: CycleSettings = resolve(preset, &[])?;
    let load = |run| Ok::<_, Failure>(Teacher::load(run, &place.device)?.with_distances(&cycle));
    let teacher = options.teacher.as_deref().map(load).transpose()?;
    let trained = watched(|observer| {
        let options = place.options(&phase.out, preset, &phase.how, String::new(), observer);
        phases::amortizer(&prepared, &settings, teacher.as_ref(), options)
    })?;
    finish(phase, &place, trained, |run| summary::amortizer_rows(&prepared, run, &place.device))
}

/// The settings of a single phase. Keys without its section, as they were once written, are accepted with a hint.
fn rooted(phase: &PhaseArgs, section: &str) -> Vec<String> {
    let has_root = |set: &&String| set.trim().strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
    if let Some(set) = phase.how.sets.iter().find(|set| !has_root(set)) {
        note(&[format!("keys are those of `run`: write `--set {section}.{}`", set.trim())]);
    }
    phase.how.sets.clone()
}

/// Calls with an observer that shows progress on stderr.
pub(crate) fn watched<T>(work: impl FnOnce(&mut dyn FnMut(Event<'_>)) -> T) -> T {
    let mut stages = Stages::new();
    let done = work(&mut |event| stages.show(&event));
    stages.finish();
    done
}

/// As [`prepared`], with what a run says before it trains: robot, instructions and what will be missing.
fn briefed(source: &SourceArgs, keys: &KeyArgs, horizon: usize, place: &Place) -> Result<Prepared, Failure> {
    let prepared = quietly_prepared(source, keys, horizon)?;
    if place.is_first() {
        brief(&phase_briefing(&prepared));
    }
    Ok(prepared)
}

/// Opens datasets, finds their features, joins and splits them, and says what a user should know about that.
pub(crate) fn prepared(source: &SourceArgs, keys: &KeyArgs, horizon: usize) -> Result<Prepared, Failure> {
    let prepared = quietly_prepared(source, keys, horizon)?;
    note(&prepared.notes);
    Ok(prepared)
}

/// As [`prepared`], but says nothing.
pub(crate) fn quietly_prepared(source: &SourceArgs, keys: &KeyArgs, horizon: usize) -> Result<Prepared, Failure> {
    let open = |dataset: &String| Source::without_features(dataset, &overrides(keys));
    let opened: Vec<Source> = source.dataset.iter().map(open).collect::<Result<_, _>>()?;
    // Datasets of different robots are refused before anyone encodes their pictures.
    Source::check_joinable(&opened)?;
    let with_features = |one: Source| filling(|progress| one.with_features(&choice(&source.features), progress));
    let opened = Source::join(opened.into_iter().map(with_features).collect::<Result<_, _>>()?)?;
    split(opened, &source.features, horizon)
}

/// Splits a dataset into training and held-out episodes.
pub(crate) fn split(source: Source, options: &FeatureArgs, horizon: usize) -> Result<Prepared, Failure> {
    let (hold_out, length) = (options.hold_out.map(std::num::NonZeroUsize::get), horizon.min(FRAGMENT_LENGTH));
    Ok(match options.tuning {
        true => Prepared::for_tuning(source, hold_out, length)?,
        false => Prepared::new(source, hold_out, length)?,
    })
}

/// Opens a dataset and finds its features.
pub(crate) fn open_source(dataset: &str, options: &FeatureArgs, keys: &KeyArgs) -> Result<Source, Failure> {
    Ok(filling(|progress| Source::open(dataset, &overrides(keys), &choice(options), progress))?)
}

/// Which features, and where they are.
fn choice(options: &FeatureArgs) -> FeatureChoice {
    let cache = options.cache.clone().or_else(|| features::default_cache().ok());
    // Whoever names an encoder or a directory expects it to be used.
    let or_pixels = options.encoder.is_none() && options.cache.is_none();
    FeatureChoice { encoder: options.encoder.clone(), cache, or_pixels }
}

/// Evaluates a trained model and prints its scores.
fn finish(
    phase: &PhaseArgs,
    place: &Place,
    trained: Option<PathBuf>,
    rows: impl FnOnce(&Path) -> experiments::Result<Vec<Row>>,
) -> Result<(), Failure> {
    let run = trained.ok_or_else(|| interrupted(&phase.out))?;
    if !place.is_first() {
        return Ok(());
    }
    let rows = rows(&run)?;
    write_json(&run.join(EVALUATION), &rows)?;
    if phase.how.compute.json {
        let value = json!({ "run": phase.out, "model": run.join(MODEL), "evaluation": rows });
        return files::print(&files::json_bytes(&value)?);
    }
    let named: Vec<(&str, &Scores)> = rows.iter().map(|row| (row.vectors.as_str(), &row.scores)).collect();
    let heading = format!("{}: clusters of held-out fragments\n", files::shown(&run.join(MODEL)));
    files::print(format!("{heading}\n{}", scores_table("vectors", &named)).as_bytes())
}

/// The error returned when the user interrupts a run.
pub(crate) fn interrupted(out: &Path) -> Failure {
    Problem::new("interrupted; finished work and checkpoints are kept")
        .fact("run", out.display())
        .hint("the same command with `--resume` continues and gives the same result")
        .into()
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
