//! Subtasks for a whole dataset, one data file at a time.
//!
//! ```text
//! sample of the dataset ─► layout of the robot, classes of segments          Fast::measure
//! each data file ─► episodes ─cut─► segments ─name─► subtasks                annotate
//! ```
//! Memory holds two data files, and for each subtask a few numbers. Episodes of a file are annotated in parallel while the next
//! file is read; results are joined in the order of episodes, so they do not depend on the number of threads.

use std::collections::BTreeMap;
use std::ops::Range;

use dataset::write::Runs;
use dataset::{Dataset, EpisodeId, Fault, RobotLayout, Stream};
use rayon::prelude::*;
use skills::{ActionLayout, Episode, ScoredSegment, SegmentConfig, segment_scored};

use crate::classes::{Classes, ClassesConfig, Member, class_names, features};
use crate::error::{Error, Result};
use crate::namer::Namer;
use crate::names_file::Names;
use crate::robot::{action_layout, episode as motions_of};
use crate::segments_file::Corrections;
use crate::subtask::{NameSource, Subtask};

/// The most frames that the robot and the classes are measured on.
pub const SAMPLE_FRAMES: usize = 100_000;

/// Subtasks of a dataset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotated {
    /// The names of subtasks, in the order of their first use.
    pub names: Vec<String>,
    /// Every generated name, with the name that is used for it.
    pub vocabulary: BTreeMap<String, Use>,
    /// The names of the classes of motions.
    pub class_names: Vec<String>,
    /// The episodes in their order.
    pub episodes: Vec<EpisodeSubtasks>,
    /// The episodes that a person corrected, as the person gave them: names are generated ones where the person left them so,
    /// thus a vocabulary that changes later applies to them.
    pub corrections: Corrections,
    /// Frames per second.
    pub fps: f64,
}

/// How a generated name is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The place of the name that is used for it.
    pub name: usize,
    /// Subtasks with this name.
    pub subtasks: usize,
    /// Their frames.
    pub frames: usize,
    /// Whether it says what the motion is, since the instruction does not fit it.
    pub by_motion: bool,
}

/// One episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpisodeSubtasks {
    /// Its subtasks in order; they cover it.
    pub subtasks: Vec<Labelled>,
    /// Where its segments end, and their classes.
    pub segments: Vec<(u32, Option<u32>)>,
    /// How well its instruction fits its motion, from 0 to 1.
    pub score: f32,
    /// Whether a person wrote any of its subtasks, other than by the vocabulary.
    pub corrected: bool,
}

/// A subtask whose name is one of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The rows of the episode, counted from its start.
    pub rows: Range<usize>,
    /// The place of its name.
    pub name: usize,
    /// Where the name comes from.
    pub named_by: NameSource,
    /// The class of most of its frames.
    pub class: Option<usize>,
    /// How sure the boundary at its start is.
    pub boundary_confidence: f32,
    /// How well the name fits the motion.
    pub name_confidence: f32,
}

/// What annotation does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Measures the robot on a sample of the dataset.
    Measure,
    /// Cuts and names episodes.
    Name,
    /// Writes the dataset.
    Write,
}

/// Receives the stage, the frames that are done and those of the whole stage.
pub type Progress<'a> = &'a (dyn Fn(Stage, u64, u64) + Sync);

/// Cuts episodes into segments and says of which class each is.
pub trait Cutter: Sync {
    /// The robot.
    fn layout(&self) -> &ActionLayout;

    /// The names of the classes.
    fn class_names(&self) -> &[String];

    /// The segments of an episode in order, and their classes.
    ///
    /// # Errors
    /// If the episode does not fit.
    fn cut(
        &self,
        dataset: &Dataset,
        episode: EpisodeId,
        motions: &Episode,
    ) -> Result<Vec<(ScoredSegment, Option<usize>)>>;

    /// The class of some rows that a person calls a subtask.
    ///
    /// # Errors
    /// If the episode has no such rows.
    fn class_of(&self, motions: &Episode, rows: &Range<usize>) -> Result<Option<usize>>;

    /// Segments that together are one thing, given the classes of an episode: disjoint ranges in order, with names. They are
    /// used where the instruction does not name the subtasks.
    fn phrases(&self, _classes: &[Option<usize>]) -> Vec<(Range<usize>, String)> {
        Vec::new()
    }
}

/// Cuts by states and actions alone, with classes found in the dataset itself.
#[derive(Clone, Debug)]
pub struct Fast {
    layout: ActionLayout,
    segments: SegmentConfig,
    /// The classes.
    pub classes: Classes,
    class_names: Vec<String>,
    /// What is not known for sure about the robot, in full sentences.
    pub notes: Vec<String>,
}

impl Fast {
    /// Measures a robot and finds the classes of its motions.
    ///
    /// # Errors
    /// If the sample cannot be read, or holds values that are not finite or absurdly large.
    pub fn measure(stream: &Stream, classes: &ClassesConfig, progress: Progress<'_>) -> Result<Fast> {
        progress(Stage::Measure, 0, 0);
        let segments = SegmentConfig::subtasks();
        let sample = stream.sample(SAMPLE_FRAMES)?;
        if finite(&sample, 0, "").is_err() {
            // The message names the file and the row.
            for file in 0..stream.files() {
                finite(&stream.read(file)?, stream.episodes_of(file).start, stream.path(file))?;
            }
        }
        let robot = RobotLayout::of(&sample);
        let layout = action_layout(&sample, &robot)?;
        let spans = sample.spans();
        let cut = |at: usize| -> Result<Vec<(Member, Vec<f64>)>> {
            let frames = &spans[at].frames;
            let motions = motions_of(&sample, frames, &layout)?;
            let found = segment_scored(&motions, &layout, &segments)?;
            let one = |segment: ScoredSegment| {
                let own = features(&layout, &motions, &segment.rows)?;
                let closed = motions.motion(&segment.rows)?.closed();
                let placed = frames.start + segment.rows.start..frames.start + segment.rows.end;
                Ok((Member { frames: placed, class: 0, closed }, own))
            };
            found.into_iter().map(one).collect()
        };
        let found: Vec<Vec<_>> = (0..spans.len()).into_par_iter().map(cut).collect::<Result<_>>()?;
        let (mut members, numbers): (Vec<Member>, Vec<Vec<f64>>) = found.into_iter().flatten().unzip();
        let classes = Classes::fit(&layout, &numbers, classes)?;
        members.iter_mut().zip(&numbers).for_each(|(member, numbers)| member.class = classes.of(numbers));
        let class_names = class_names(&sample, &robot, &layout, classes.count(), &members);
        Ok(Fast { layout, segments, classes, class_names, notes: robot.notes().cloned().collect() })
    }
}

impl Cutter for Fast {
    fn layout(&self) -> &ActionLayout {
        &self.layout
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn cut(&self, _: &Dataset, _: EpisodeId, motions: &Episode) -> Result<Vec<(ScoredSegment, Option<usize>)>> {
        let found = segment_scored(motions, &self.layout, &self.segments)?;
        let with_class = |segment: ScoredSegment| {
            let class = self.class_of(motions, &segment.rows)?;
            Ok((segment, class))
        };
        found.into_iter().map(with_class).collect()
    }

    fn class_of(&self, motions: &Episode, rows: &Range<usize>) -> Result<Option<usize>> {
        Ok(Some(self.classes.of(&features(&self.layout, motions, rows)?)))
    }
}

/// Annotates a dataset.
///
/// # Errors
/// If a file cannot be read, or holds values that are not finite.
pub fn annotate(
    stream: &Stream,
    cutter: &dyn Cutter,
    names: &Names,
    corrections: &Corrections,
    progress: Progress<'_>,
) -> Result<Annotated> {
    let namer = Namer::default();
    let mut annotated =
        Annotated { class_names: cutter.class_names().to_vec(), fps: stream.info().fps, ..Annotated::default() };
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let total = stream.frames() as u64;
    progress(Stage::Name, 0, total);
    let done = std::sync::atomic::AtomicU64::new(0);
    let mut next = Some(stream.read(0));
    for file in 0..stream.files() {
        let Some(part) = next.take() else { break };
        let part = part?;
        let first = stream.episodes_of(file).start;
        finite(&part, first, stream.path(file))?;
        let one = |at: usize| {
            let found = episode(&part, at, cutter, &namer, names, corrections.get(&(first + at)));
            let frames = part.spans()[at].frames.len() as u64;
            let so_far = done.fetch_add(frames, std::sync::atomic::Ordering::Relaxed) + frames;
            progress(Stage::Name, so_far, total);
            found
        };
        let (found, following) = rayon::join(
            || (0..part.spans().len()).into_par_iter().map(one).collect::<Result<Vec<Named>>>(),
            || (file + 1 < stream.files()).then(|| stream.read(file + 1)),
        );
        next = following;
        for named in found? {
            annotated.add(named, &mut places);
        }
    }
    Ok(annotated)
}

impl Annotated {
    /// For each frame of the dataset the place of its subtask's name.
    pub fn subtask_runs(&self) -> Runs {
        let mut runs = Runs::default();
        for one in self.episodes.iter().flat_map(|episode| &episode.subtasks) {
            runs.push(one.rows.len(), one.name as i64);
        }
        runs
    }

    /// For each frame of the dataset its class, or −1.
    pub fn class_runs(&self) -> Runs {
        let mut runs = Runs::default();
        for episode in &self.episodes {
            let mut start = 0;
            for (end, class) in &episode.segments {
                runs.push((end - start) as usize, class.map_or(-1, i64::from));
                start = *end;
            }
        }
        runs
    }

    /// Adds an episode.
    fn add(&mut self, named: Named, places: &mut BTreeMap<String, usize>) {
        if named.corrected {
            let written = named.pieces.iter().flat_map(|piece| match piece.parts.is_empty() {
                true => vec![(piece.subtask.rows.clone(), piece.subtask.name.clone())],
                false => piece.parts.clone(),
            });
            self.corrections.insert(self.episodes.len(), written.collect());
        }
        let mut subtasks = Vec::with_capacity(named.pieces.len());
        for Piece { subtask: one, parts, .. } in named.pieces {
            let name = *places.entry(one.name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() - 1
            });
            for (at, (rows, text)) in parts.iter().enumerate() {
                let used = self.vocabulary.entry(text.clone()).or_insert(Use { name, ..Use::default() });
                // Equal neighbours are one subtask.
                used.subtasks += usize::from(!parts[..at].iter().any(|(_, before)| before == text));
                used.frames += rows.len();
                used.by_motion |= one.named_by == NameSource::Motion;
            }
            subtasks.push(Labelled {
                rows: one.rows,
                name,
                named_by: one.named_by,
                class: one.class,
                boundary_confidence: one.boundary_confidence as f32,
                name_confidence: one.name_confidence as f32,
            });
        }
        subtasks.shrink_to_fit();
        let (segments, corrected) = (named.segments, named.corrected);
        self.episodes.push(EpisodeSubtasks { subtasks, segments, score: named.score as f32, corrected });
    }
}

/// A subtask with the name to use.
struct Piece {
    subtask: Subtask,
    /// The rows with generated names that it consists of. Of a person's, its own rows with the generated name that the person
    /// left there: the vocabulary applies to it, now and later. None where the person wrote a name.
    parts: Vec<(Range<usize>, String)>,
    /// Whether a person wrote its rows or its name.
    by_person: bool,
}

/// An episode whose names are still texts.
struct Named {
    pieces: Vec<Piece>,
    segments: Vec<(u32, Option<u32>)>,
    score: f64,
    corrected: bool,
}

fn episode(
    part: &Dataset,
    at: usize,
    cutter: &dyn Cutter,
    namer: &Namer,
    names: &Names,
    correction: Option<&Vec<(Range<usize>, String)>>,
) -> Result<Named> {
    let span = &part.spans()[at];
    let motions = motions_of(part, &span.frames, cutter.layout())?;
    let found = cutter.cut(part, EpisodeId(at as u32), &motions)?;
    let (mut segments, mut classes): (Vec<ScoredSegment>, Vec<Option<usize>>) = found.into_iter().unzip();
    let instruction = part.tasks().get(span.task.at()).map_or("", String::as_str);
    let named = namer.name(instruction, &motions, cutter.layout(), &segments);
    let generated = phrased(named.subtasks, &segments, &cutter.phrases(&classes));
    let mut pieces = joined(generated.iter().map(|one| renamed(one, names)).collect());
    if let Some(rows) = correction {
        let corrected = corrected(rows, &generated, names);
        let mut kept = Vec::new();
        for Piece { subtask: one, by_person, .. } in &corrected {
            match *by_person && !pieces.iter().any(|known| known.subtask.rows == one.rows) {
                false => kept.extend(within(&one.rows, &segments, &classes)),
                // A boundary that a person moved: the stretch is one segment.
                true => {
                    let segment = ScoredSegment { rows: one.rows.clone(), confidence: 1.0 };
                    kept.push((segment, cutter.class_of(&motions, &one.rows)?));
                }
            }
        }
        pieces = joined(corrected);
        (segments, classes) = kept.into_iter().unzip();
    }
    for piece in &mut pieces {
        piece.subtask.class = prevailing(&piece.subtask.rows, &segments, &classes);
    }
    let ends = segments.iter().map(|segment| segment.rows.end as u32);
    let segments = ends.zip(classes.iter().map(|class| class.map(|class| class as u32))).collect();
    let corrected = pieces.iter().any(|piece| piece.by_person);
    Ok(Named { pieces, segments, score: named.score, corrected })
}

/// A generated subtask with the name to use.
fn renamed(one: &Subtask, names: &Names) -> Piece {
    let used = names.of(&one.name).to_owned();
    // A name that a person chose for another one.
    let named_by = if used == one.name { one.named_by } else { NameSource::Person };
    let parts = vec![(one.rows.clone(), one.name.clone())];
    Piece { subtask: Subtask { name: used, named_by, ..one.clone() }, parts, by_person: false }
}

/// Generated neighbours with one name are one subtask, as they are in a column of numbers; those of a person stay.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let one = &piece.subtask;
        match found.last_mut() {
            Some(last) if last.subtask.name == one.name && !last.by_person && !piece.by_person => {
                let weight = |subtask: &Subtask| subtask.name_confidence * subtask.rows.len() as f64;
                let sum = weight(&last.subtask) + weight(one);
                last.subtask.rows.end = one.rows.end;
                last.subtask.name_confidence = sum / last.subtask.rows.len().max(1) as f64;
                last.parts.extend(piece.parts);
            }
            _ => found.push(piece),
        }
    }
    found
}

/// Subtasks that are named by their motion, joined where a phrase covers them.
fn phrased(subtasks: Vec<Subtask>, segments: &[ScoredSegment], phrases: &[(Range<usize>, String)]) -> Vec<Subtask> {
    let by_motion = |rows: &Range<usize>| {
        let mut inside = subtasks.iter().filter(|one| one.rows.start < rows.end && rows.start < one.rows.end);
        inside.all(|one| one.named_by == NameSource::Motion && rows.start <= one.rows.start && one.rows.end <= rows.end)
    };
    let placed: Vec<(Range<usize>, &String)> = phrases
        .iter()
        .filter_map(|(range, name)| {
            let (first, last) = (segments.get(range.start)?, segments.get(range.end.checked_sub(1)?)?);
            Some((first.rows.start..last.rows.end, name))
        })
        .filter(|(rows, _)| by_motion(rows))
        .collect();
    let mut found: Vec<Subtask> = Vec::new();
    for one in subtasks {
        match placed.iter().find(|(rows, _)| rows.start <= one.rows.start && one.rows.end <= rows.end) {
            Some((rows, _)) if rows.start < one.rows.start => {}
            Some((rows, name)) => {
                found.push(Subtask { rows: rows.clone(), name: (*name).clone(), named_by: NameSource::Library, ..one });
            }
            None => found.push(one),
        }
    }
    found
}

/// The subtasks of a correction. Where its rows and their names are as they were generated, under any name that the vocabulary
/// knows for them, they stay generated; the others are a person's.
fn corrected(rows: &[(Range<usize>, String)], generated: &[Subtask], names: &Names) -> Vec<Piece> {
    let one = |(rows, name): &(Range<usize>, String)| {
        let inside = generated.iter().filter(|one| one.rows.start < rows.end && rows.start < one.rows.end);
        let inside: Vec<&Subtask> = inside.collect();
        let fits = inside.first().is_some_and(|first| first.rows.start == rows.start)
            && inside.last().is_some_and(|last| last.rows.end == rows.end)
            && inside.iter().all(|one| names.knows(&one.name, name));
        if fits {
            return inside.into_iter().map(|one| renamed(one, names)).collect();
        }
        // A person who moves a boundary and leaves the name keeps it in the vocabulary, under its present name and under any that
        // it gets later. Of several generated names that are used alike it is the one of most of the rows.
        let common = |one: &Subtask| one.rows.end.min(rows.end).saturating_sub(one.rows.start.max(rows.start));
        let known = inside.iter().rev().filter(|one| names.knows(&one.name, name)).max_by_key(|one| common(one));
        let written = Subtask {
            rows: rows.clone(),
            name: known.map_or_else(|| name.clone(), |one| names.of(&one.name).to_owned()),
            named_by: NameSource::Person,
            class: None,
            boundary_confidence: 1.0,
            name_confidence: 1.0,
        };
        let parts = known.map(|one| (rows.clone(), one.name.clone())).into_iter().collect();
        vec![Piece { subtask: written, parts, by_person: true }]
    };
    rows.iter().flat_map(one).collect()
}

/// The parts of segments that lie in some rows, with their classes.
fn within(
    rows: &Range<usize>,
    segments: &[ScoredSegment],
    classes: &[Option<usize>],
) -> Vec<(ScoredSegment, Option<usize>)> {
    let part = |(segment, class): (&ScoredSegment, &Option<usize>)| {
        let common = segment.rows.start.max(rows.start)..segment.rows.end.min(rows.end);
        let part = ScoredSegment { rows: common.clone(), confidence: segment.confidence };
        (!common.is_empty()).then_some((part, *class))
    };
    segments.iter().zip(classes).filter_map(part).collect()
}

/// The class of most frames of some rows, the first of equals.
fn prevailing(rows: &Range<usize>, segments: &[ScoredSegment], classes: &[Option<usize>]) -> Option<usize> {
    let mut frames: BTreeMap<usize, usize> = BTreeMap::new();
    for (segment, class) in segments.iter().zip(classes) {
        let common = segment.rows.end.min(rows.end).saturating_sub(segment.rows.start.max(rows.start));
        if let (Some(class), true) = (class, common > 0) {
            *frames.entry(*class).or_default() += common;
        }
    }
    frames.into_iter().max_by_key(|(class, frames)| (*frames, std::cmp::Reverse(*class))).map(|(class, _)| class)
}

/// The greatest magnitude of a state or an action: squares and sums of such numbers can still be compared.
const GREATEST: f32 = 1e12;

/// Checks that states and actions are numbers that cutting can use.
fn finite(dataset: &Dataset, first: usize, file: &str) -> Result<()> {
    let columns = dataset.columns();
    let roles = dataset.roles();
    for (matrix, key) in [(&columns.states, &roles.state), (&columns.actions, &roles.action)] {
        let wrong = |value: &f32| !value.is_finite() || value.abs() > GREATEST;
        let bad = |block: &[f32]| block.iter().any(wrong);
        if !bad(&matrix.values) {
            continue;
        }
        let width = matrix.width.max(1);
        let rows: Vec<usize> =
            matrix.values.chunks(width).enumerate().filter(|(_, row)| bad(row)).map(|it| it.0).collect();
        let row = rows.first().copied().unwrap_or_default();
        let values = &matrix.values[row * width..(row + 1) * width];
        let place = values.iter().position(wrong).unwrap_or_default();
        let value = f64::from(values.get(place).copied().unwrap_or(f32::NAN));
        let episode = dataset.spans().iter().position(|span| span.frames.contains(&row)).map(|at| first + at);
        let (file, column, count) = (file.to_owned(), key.clone(), rows.len());
        let fault = match value.is_finite() {
            false => Fault::NotFinite { file, column, row, episode, value, count },
            true => {
                let column = if matrix.width > 1 { format!("{column}[{place}]") } else { column };
                let mut sizes: Vec<f32> = matrix.values.chunks(width).map(|row| row[place].abs()).collect();
                sizes.sort_by(f32::total_cmp);
                let usual = f64::from(sizes[sizes.len() / 2]);
                Fault::Implausible { file, column, row, episode, value, usual, count }
            }
        };
        return Err(Error::Dataset(fault.into()));
    }
    Ok(())
}
