//! A run as a report: what `report.html` shows.
//!
//! Everything is read from the run's directory or made again from the dataset, so a report can be written at any time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use clustering::{Points, principal_plane};
use compression::{Library, Parameter};
use dataset::{CameraId, FrameIndex, FrameOptions, FrameReader};
use language::{TermId, TermStore, evaluate, print};
use models::training::metrics;
use report::{
    Better, Candidate, ClusterMap, DatasetInfo, Entry, Episode, Estimate, Example, Expansion, Gate, Hole, Iteration,
    LossTerm, Metric, Picture, Posterior, Report, Run, SCHEMA, Series, Skill, Span, TrainingPhase, Verdict,
};
use serde_json::Value;

use super::driver::World;
use super::session::Session;
use super::settings::RunSettings;
use super::summary::{JudgedCandidate, RunSummary};
use super::wake::value_of;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Examples of a skill, and pictures of an example.
const EXAMPLES: usize = 3;
const PICTURES: usize = 5;

/// The quality of pictures, of 100.
const QUALITY: u8 = 80;

/// Calls of an entry that are shown with what they mean.
const EXPANSIONS: usize = 3;

/// What a report says that the run itself does not know.
pub(super) struct Telling<'a> {
    /// The run's directory.
    pub(super) out: &'a Path,
    /// The name or path of the preset.
    pub(super) preset: &'a str,
    /// The seed.
    pub(super) seed: u64,
    /// What it ran on.
    pub(super) device: String,
    /// How long it took, in seconds.
    pub(super) seconds: f64,
    /// The command that makes it again.
    pub(super) command: String,
}

/// The report of a run as data.
pub(super) fn report(
    session: &Session<'_, '_>,
    settings: &RunSettings,
    world: &World,
    summary: &RunSummary,
    library: &Library,
) -> Result<Report> {
    let telling = Telling {
        out: session.run.root(),
        preset: session.options.preset,
        seed: session.options.seed,
        device: session.options.runs_on.clone(),
        seconds: session.seconds(),
        command: session.options.command.clone(),
    };
    tell(session.prepared, settings, world, summary, library, &telling)
}

fn tell(
    prepared: &Prepared,
    settings: &RunSettings,
    world: &World,
    summary: &RunSummary,
    library: &Library,
    telling: &Telling<'_>,
) -> Result<Report> {
    let dataset = &prepared.source.dataset;
    let config = toml::to_string(settings).ok();
    let hash = models::noise::mix(0, config.as_deref().unwrap_or_default().as_bytes());
    let (learned, held_out) = summary.demonstrations;
    Ok(Report {
        schema: SCHEMA,
        run: Run {
            title: format!("{}: {} outer iterations", summary.dataset, settings.cycle.iterations),
            datasets: vec![DatasetInfo {
                name: summary.dataset.clone(),
                episodes: learned as u64,
                held_out_episodes: held_out as u64,
                frames: dataset.frames() as u64,
                tasks: dataset.tasks().len() as u64,
                fps: dataset.info().fps,
                reward: prepared.has_rewards(),
                pictures: !dataset.roles().cameras.is_empty(),
            }],
            presets: vec![telling.preset.to_owned()],
            seed: telling.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: None,
            device: telling.device.clone(),
            started: None,
            seconds: telling.seconds,
            command: telling.command.clone(),
            config_hash: format!("{hash:016x}"),
            config,
        },
        tasks: dataset.tasks().to_vec(),
        phases: phase_names(prepared),
        iterations: iterations(summary),
        training: trainings(telling.out, settings.cycle.iterations)?,
        skills: skills(prepared, world)?,
        map: Some(map(prepared, world)?),
        episodes: episodes(prepared, world, library, settings)?,
        library: entries(world, library, summary)?,
        candidates: candidates(summary),
        metrics: figures(summary),
        notes: notes(summary),
    })
}

/// Names of phases, by label; numbers where there are no names.
fn phase_names(prepared: &Prepared) -> Vec<String> {
    let dataset = &prepared.source.dataset;
    let Some(phases) = dataset.columns().labels.get("phase") else { return Vec::new() };
    let most = phases.iter().copied().max().unwrap_or(-1);
    let names = dataset.label_names("phase").unwrap_or_default();
    (0..=most).map(|at| names.get(at as usize).cloned().unwrap_or_else(|| format!("phase {at}"))).collect()
}

fn iterations(summary: &RunSummary) -> Vec<Iteration> {
    let empty = Iteration {
        t: 0,
        programs_nats: f64::NAN,
        library_nats: f64::NAN,
        entries: 0,
        skills: Some(summary.skills as u64),
        nmi_task: None,
        ari_task: None,
        nmi_phase: None,
        ari_phase: None,
        tpe_token_accuracy: None,
        tpe_exact_match: None,
        lcad_error_with_library: None,
        lcad_error_without_library: None,
        seconds: None,
    };
    let mut all = Vec::new();
    if let Some(first) = summary.refactor.first() {
        all.push(Iteration {
            programs_nats: first.before.programs,
            library_nats: first.before.library,
            ..empty.clone()
        });
    }
    for (at, (policy, refactored)) in summary.policies.iter().zip(&summary.refactor).enumerate() {
        all.push(Iteration {
            t: at as u32 + 1,
            programs_nats: refactored.after.programs,
            library_nats: refactored.after.library,
            entries: refactored.library.len() as u64,
            nmi_task: Some(summary.skill_tasks.nmi),
            ari_task: Some(summary.skill_tasks.ari),
            nmi_phase: summary.skill_phases.map(|phases| phases.nmi),
            ari_phase: summary.skill_phases.map(|phases| phases.ari),
            tpe_token_accuracy: value_of(&policy.measures, "emitter (TPE)", "token accuracy"),
            tpe_exact_match: value_of(&policy.measures, "emitter (TPE)", "exact programs"),
            lcad_error_with_library: value_of(&policy.measures, "decoder (LCAD)", "velocity error"),
            ..empty.clone()
        });
    }
    all
}

/// Loss curves, from the lines that the trainer wrote.
fn trainings(out: &Path, iterations: u32) -> Result<Vec<TrainingPhase>> {
    let mut found = vec![training(&out.join("world_model"), "world model", None)?];
    // Trained once before the loop on D_φ, or in each iteration.
    for name in ["amortizer", "separable"].into_iter().filter(|name| out.join(name).is_dir()) {
        found.push(training(&out.join(name), name, None)?);
    }
    for t in 1..=iterations {
        let folder = out.join(format!("t{t}"));
        for name in ["emitter", "decoder", "amortizer"].into_iter().filter(|name| folder.join(name).is_dir()) {
            found.push(training(&folder.join(name), name, Some(t))?);
        }
    }
    Ok(found)
}

fn training(run: &Path, name: &str, iteration: Option<u32>) -> Result<TrainingPhase> {
    let path = run.join(metrics::FILE);
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    let (mut learned, mut judged) = (BTreeMap::<String, Series>::new(), BTreeMap::<String, Series>::new());
    let add = |series: &mut BTreeMap<String, Series>, name: &str, step: f64, value: &Value| {
        let series = series.entry(name.to_owned()).or_default();
        series.steps.push(step);
        series.values.push(value.as_f64().unwrap_or(f64::NAN));
    };
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let step = line["step"].as_f64().unwrap_or(f64::NAN);
        if let Some(loss) = line.get("loss") {
            add(&mut learned, "total", step, loss);
        }
        for (place, series) in [("terms", &mut learned), ("evaluation", &mut judged)] {
            for (name, value) in line[place].as_object().into_iter().flatten() {
                add(series, name, step, value);
            }
        }
    }
    let mut names: Vec<String> = learned.keys().chain(judged.keys()).cloned().collect();
    names.sort_by_key(|name| (name != "total", name.clone()));
    names.dedup();
    let term = |name: String| LossTerm {
        training: learned.remove(&name).unwrap_or_default(),
        held_out: judged.remove(&name).unwrap_or_default(),
        name,
    };
    Ok(TrainingPhase { name: name.to_owned(), iteration, terms: names.into_iter().map(term).collect() })
}

/// Skills with their commonest phase, mean motion and pictures of those nearest to the middle.
fn skills(prepared: &Prepared, world: &World) -> Result<Vec<Skill>> {
    let dataset = &prepared.source.dataset;
    let phases = dataset.columns().labels.get("phase");
    let states = &dataset.columns().states;
    let mut members: Vec<Vec<(usize, Range<usize>)>> = vec![Vec::new(); world.corpus.alphabet.skills.len()];
    for (at, (demonstration, calls)) in world.demonstrations.all.iter().zip(&world.corpus.calls).enumerate() {
        for (segment, call) in demonstration.segments.iter().zip(calls) {
            members[call.skill.0].push((at, segment.clone()));
        }
    }
    let reader = FrameReader::new(dataset, FrameOptions::default());
    let mut found = Vec::new();
    for (skill, members) in world.corpus.alphabet.skills.iter().zip(&members) {
        let count = members.len().max(1) as f64;
        let frames = || members.iter().flat_map(|(_, frames)| frames.clone());
        let commonest = phases.and_then(|phases| {
            let mut counts = BTreeMap::<i64, usize>::new();
            frames().for_each(|frame| *counts.entry(phases[frame]).or_default() += 1);
            let (phase, most) = counts.iter().max_by_key(|(phase, most)| (**most, -**phase))?;
            Some((*phase, *most as f64 / frames().count().max(1) as f64))
        });
        let moved = |column: usize| {
            let change = |frames: &Range<usize>| {
                let at = |frame: usize| f64::from(states.values[frame * states.width + column]);
                at(frames.end - 1) - at(frames.start)
            };
            members.iter().map(|(_, frames)| change(frames)).sum::<f64>() / count
        };
        // LIBERO's state: position, rotation, two fingers.
        let libero = states.width == 8;
        let typical = typical(members);
        found.push(Skill {
            name: skill.name.clone(),
            size: members.len() as u64,
            mean_length: frames().count() as f64 / count,
            purity: commonest.map(|(_, share)| share),
            main_phase: commonest.map(|(phase, _)| phase),
            displacement: if libero && !members.is_empty() { Some([moved(0), moved(1), moved(2)]) } else { None },
            gripper: if libero && !members.is_empty() { Some(moved(6) - moved(7)) } else { None },
            examples: typical
                .into_iter()
                .map(|(at, frames)| example(world, &reader, at, &frames, !dataset.roles().cameras.is_empty()))
                .collect::<Result<_>>()?,
        });
    }
    Ok(found)
}

/// Segments of a length near the median, of different demonstrations where there are enough.
fn typical(members: &[(usize, Range<usize>)]) -> Vec<(usize, Range<usize>)> {
    let mut by_length: Vec<&(usize, Range<usize>)> = members.iter().collect();
    by_length.sort_by_key(|(at, frames)| (frames.len(), *at, frames.start));
    let middle = by_length.len() / 2;
    let mut nearest: Vec<&(usize, Range<usize>)> = Vec::new();
    for distance in 0..by_length.len() {
        for place in [middle.checked_sub(distance + 1), Some(middle + distance)].into_iter().flatten() {
            if let Some(one) = by_length.get(place).filter(|one| nearest.iter().all(|taken| taken.0 != one.0)) {
                nearest.push(one);
            }
        }
        if nearest.len() >= EXAMPLES {
            break;
        }
    }
    nearest.into_iter().take(EXAMPLES).cloned().collect()
}

fn example(
    world: &World,
    reader: &FrameReader<'_>,
    at: usize,
    frames: &Range<usize>,
    pictures: bool,
) -> Result<Example> {
    let first = world.demonstrations.all[at].frames.start;
    let chosen: Vec<usize> =
        (0..PICTURES).map(|place| frames.start + place * (frames.len() - 1) / (PICTURES - 1).max(1)).collect();
    let keys: Vec<(CameraId, FrameIndex)> = chosen.iter().map(|frame| (CameraId(0), FrameIndex(*frame))).collect();
    let found = if pictures { reader.read(&keys)? } else { Vec::new() };
    Ok(Example {
        episode: u64::from(world.demonstrations.all[at].episode.0),
        first_frame: (frames.start - first) as u64,
        end_frame: (frames.end - first) as u64,
        pictures: found.iter().filter_map(|frame| frame.jpeg(QUALITY)).map(Picture).collect(),
    })
}

/// All segments, by the two first principal components of their coordinates under D_φ.
fn map(prepared: &Prepared, world: &World) -> Result<ClusterMap> {
    let (values, width) = world.classes.coordinates()?;
    let (plane, share) = principal_plane(Points::new(&values, width)?);
    let phases = prepared.source.dataset.columns().labels.get("phase");
    let mut map = ClusterMap {
        method: format!("the two first principal components of D_φ, {:.0} % of the variance", share * 100.0),
        x: plane.iter().map(|at| at[0]).collect(),
        y: plane.iter().map(|at| at[1]).collect(),
        skill: Vec::new(),
        phase: Vec::new(),
        task: Vec::new(),
        episode: Vec::new(),
        first_frame: Vec::new(),
        end_frame: Vec::new(),
    };
    for id in &world.classes.ids {
        let demonstration = &world.demonstrations.all[id.demonstration];
        let (frames, first) = (world.demonstrations.frames(*id), demonstration.frames.start);
        map.skill.push(world.corpus.calls[id.demonstration][id.segment].skill.0 as i64);
        map.phase.extend(phases.map(|phases| phases[frames.start + frames.len() / 2]));
        map.task.push(prepared.source.dataset.columns().tasks[frames.start]);
        map.episode.push(u64::from(demonstration.episode.0));
        map.first_frame.push((frames.start - first) as u64);
        map.end_frame.push((frames.end - first) as u64);
    }
    Ok(map)
}

fn episodes(prepared: &Prepared, world: &World, library: &Library, settings: &RunSettings) -> Result<Vec<Episode>> {
    let columns = prepared.source.dataset.columns();
    let phases = columns.labels.get("phase");
    let programs = world.corpus.compiled(library, settings.cycle.refactor.strategy)?.programs.texts();
    let count = world.demonstrations.all.len();
    let one = |at: usize| {
        let demonstration = &world.demonstrations.all[at];
        let first = demonstration.frames.start;
        let span = |frames: &Range<usize>, label: i64| Span {
            first: (frames.start - first) as u64,
            end: (frames.end - first) as u64,
            label,
        };
        let skills = demonstration.segments.iter().zip(&world.corpus.calls[at]);
        let mut own: Vec<Span> = Vec::new();
        for frame in demonstration.frames.clone() {
            let Some(phases) = phases else { break };
            match own.last_mut().filter(|last| last.label == phases[frame]) {
                Some(last) => last.end += 1,
                None => own.push(span(&(frame..frame + 1), phases[frame])),
            }
        }
        Episode {
            index: u64::from(demonstration.episode.0),
            dataset: 0,
            task: columns.tasks[first],
            instruction: demonstration.instruction.clone(),
            frames: demonstration.frames.len() as u64,
            held_out: demonstration.held_out,
            skills: skills.map(|(frames, call)| span(frames, call.skill.0 as i64)).collect(),
            phases: own,
            program: Some(format!("{}\n{}", programs[at], programs[count + at])),
        }
    };
    Ok((0..count).map(one).collect())
}

/// The library with what its bodies call and a few calls of the training programs.
fn entries(world: &World, library: &Library, summary: &RunSummary) -> Result<Vec<Entry>> {
    let Some(last) = summary.refactor.last() else { return Ok(Vec::new()) };
    let programs = super::refactoring::read(&world.corpus, last)?;
    let compiled = compression::compile(&programs, compression::Strategy::Greedy)?;
    let programs = &compiled.programs;
    let mut store = programs.store().clone();
    let mut found = Vec::new();
    for (entry, calls) in library.entries().iter().zip(&compiled.entries) {
        let Some(definition) = programs.definition(&entry.name) else { continue };
        let mut expansions = Vec::<Expansion>::new();
        for call in &calls.calls {
            let Some(meaning) = meaning(&mut store, programs.signature(), call.term) else { continue };
            let text = print(&store, call.term);
            if expansions.iter().all(|known| known.call != text) {
                expansions.push(Expansion { call: text, meaning });
            }
            if expansions.len() >= EXPANSIONS {
                break;
            }
        }
        found.push(Entry {
            name: entry.name.clone(),
            ty: entry.principal_type.clone(),
            body: entry.body.clone(),
            holes: holes(&definition.parameters),
            uses: entry.uses,
            gain_nats: entry.gain,
            posterior: entry.posterior.map(|share| Posterior { mean: share.mean, low: share.low, high: share.high }),
            calls: definition.calls,
            iteration: entry.iteration,
            expansions,
        });
    }
    Ok(found)
}

/// The primitive calls of a program, one a line.
fn meaning(store: &mut TermStore, signature: &language::Signature, term: TermId) -> Option<String> {
    let events = evaluate(store, signature, term).ok()?;
    let lines: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            language::Event::Call { term, .. } => Some(print(store, *term)),
            language::Event::Branch { .. } | language::Event::Repeat { .. } => None,
        })
        .collect();
    Some(lines.join("\n"))
}

fn holes(parameters: &[Parameter]) -> Vec<Hole> {
    parameters.iter().map(|one| Hole { name: one.name.clone(), ty: one.ty.clone() }).collect()
}

fn candidates(summary: &RunSummary) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (at, refactored) in summary.refactor.iter().enumerate() {
        for candidate in &refactored.candidates {
            found.push(judged(candidate, at as u32 + 1));
        }
    }
    found
}

fn judged(candidate: &JudgedCandidate, iteration: u32) -> Candidate {
    let judgement = &candidate.judgement;
    let gate = |name: &str| {
        let silent = Gate { verdict: Verdict::Inactive, value: None, low: None, high: None, limit: None };
        judgement.figure(name).map_or(silent, |figure| Gate {
            verdict: figure.verdict,
            value: figure.value,
            low: figure.high.and(figure.value),
            high: figure.high,
            limit: figure.limit,
        })
    };
    let reasons = judgement.reasons();
    Candidate {
        iteration,
        body: candidate.body.clone(),
        holes: holes(&candidate.parameters),
        ty: candidate.principal_type.clone(),
        uses: candidate.uses,
        soundness: gate("soundness"),
        returns: gate("returns"),
        gain: gate("length"),
        admitted: judgement.admitted,
        reason: if reasons.is_empty() { "passed all gates".to_owned() } else { reasons.join("; ") },
        name: judgement.admitted.then(|| candidate.name.clone()),
    }
}

fn figures(summary: &RunSummary) -> Vec<Metric> {
    let exact = |value: f64| Some(Estimate { mean: value, low: None, high: None });
    let alone = |group: &str, name: &str, better, value: f64, note: &str| Metric {
        group: group.to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        better,
        with_library: exact(value),
        without_library: None,
        paper: None,
        note: note.to_owned(),
    };
    let mut rows: Vec<Metric> = Vec::new();
    if let Some(phases) = &summary.skill_phases {
        rows.push(alone("skills", "purity against phases", Better::Higher, phases.purity, "held-out frames"));
        rows.push(alone("skills", "NMI against phases", Better::Higher, phases.nmi, "held-out frames"));
        rows.push(alone("skills", "boundary F1", Better::Higher, phases.boundary_f1, "within 4 frames"));
    }
    rows.push(alone(
        "skills",
        "replay error of actions",
        Better::Lower,
        summary.replay.action_error,
        "as a share of what was recorded",
    ));
    rows
}

fn notes(summary: &RunSummary) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rewriting) = summary.arms.first().and_then(|arm| arm.rewriting.as_ref()) {
        notes.push(format!(
            "The library rewrites {} of {} demonstrations and {} of its {} entries are called.",
            rewriting.rewritten, rewriting.demonstrations, rewriting.entries_used, rewriting.entries
        ));
    }
    notes.extend([
        "Returns are imagined by the world model, not measured on a robot or in a simulator.".to_owned(),
        "The policies with and without the library were trained from the same start for as many steps.".to_owned(),
    ]);
    notes.extend(summary.unknown_instructions.iter().map(|unknown| format!("The grammar does not know {unknown}.")));
    notes
}
