//! Whole datasets through the stream: classes, phrases, corrections, and any number of data files.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use dataset::synthetic::{Noise, Options, Synthetic};
use dataset::write::{ColumnData, EpisodeData, FrameValues as _, WriteOptions, Writer};
use dataset::{Dataset, EpisodeId, Overrides, RobotLayout, Root, Stream};
use skills::{ActionLayout, Episode, ScoredSegment};
use subtasks::annotate::{Annotated, Cutter, Fast, annotate};
use subtasks::classes::ClassesConfig;
use subtasks::names_file::Names;
use subtasks::robot::action_layout;
use subtasks::segments_file::Corrections;
use subtasks::{NameSource, Result};

/// An arm without cameras, two episodes of each task.
fn arm(folder: &Path) -> Root {
    let target = folder.join("arm");
    let options = Options { per_task: 2, seed: 3, noise: Noise::level(1).unwrap_or_default() };
    dataset::synthetic::write(&target, Synthetic::StateOnly, &options).unwrap();
    Root::Directory(target)
}

fn stream(root: &Root) -> Stream {
    Stream::open(root.clone(), &Overrides::default()).unwrap()
}

/// The same states and actions in many data files.
fn in_files(root: &Root, target: &Path, files: usize) -> Root {
    let whole = Dataset::open(root.clone(), &Overrides::default()).unwrap();
    let (state, action) = (&whole.roles().state, &whole.roles().action);
    let features = whole.info().features.iter().filter(|(key, _)| [state, action].contains(&key)).cloned().collect();
    // Padding, so that files are full after a few episodes.
    let mut features: Vec<(String, dataset::Feature)> = features;
    features.push(("padding".to_owned(), dataset::Feature::new(dataset::Dtype::Float32, &[4096])));
    let options = WriteOptions { data_file_mb: 1, ..WriteOptions::new(whole.info().fps as u32, features) };
    let mut writer = Writer::create(target, options).unwrap();
    let mut noise = 1_u32;
    for span in whole.spans() {
        let window = whole.window(span.frames.clone());
        let padding: Vec<f32> = (0..span.frames.len() * 4096)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                noise as f32
            })
            .collect();
        let columns = [
            (state.as_str(), ColumnData::F32(window.states)),
            (action.as_str(), ColumnData::F32(window.actions)),
            ("padding", ColumnData::F32(&padding)),
        ];
        writer.add_episode(&EpisodeData { task: &whole.tasks()[span.task.at()], columns: &columns }).unwrap();
    }
    assert!(writer.finish().unwrap().data_files >= files as u64);
    Root::Directory(target.to_path_buf())
}

fn fast(stream: &Stream) -> Fast {
    Fast::measure(stream, &ClassesConfig::default(), &|_, _, _| {}).unwrap()
}

fn annotated(stream: &Stream) -> Annotated {
    annotate(stream, &fast(stream), &Names::default(), &Corrections::new(), &|_, _, _| {}).unwrap()
}

#[test]
fn the_number_of_data_files_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = arm(folder.path());
    let many = in_files(&root, &folder.path().join("many"), 3);
    let (one, other) = (stream(&root), stream(&many));
    assert!(one.files() == 1 && other.files() >= 3);
    let (one, other) = (annotated(&one), annotated(&other));
    assert_eq!(one, other);
    assert!(!one.class_names.is_empty() && !one.names.is_empty());
}

#[test]
fn subtasks_and_classes_cover_every_frame_and_the_vocabulary_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(&arm(folder.path()));
    let found = annotated(&stream);
    assert_eq!((found.subtask_runs().frames(), found.class_runs().frames()), (stream.frames(), stream.frames()));
    let frames: usize = found.vocabulary.values().map(|used| used.frames).sum();
    assert_eq!(frames, stream.frames());
    let subtasks: usize = found.episodes.iter().map(|episode| episode.subtasks.len()).sum();
    assert_eq!(found.vocabulary.values().map(|used| used.subtasks).sum::<usize>(), subtasks);
    let confident = |value: f32| (0.0..=1.0).contains(&value);
    for one in found.episodes.iter().flat_map(|episode| &episode.subtasks) {
        assert!(confident(one.boundary_confidence) && confident(one.name_confidence), "{one:?}");
        assert!(one.class.is_some_and(|class| class < found.class_names.len()));
    }
}

/// Cuts every episode into five equal segments of classes 0, 1, 2, 3, 4.
struct Fifths {
    layout: ActionLayout,
    names: Vec<String>,
    phrases: Vec<(Range<usize>, String)>,
}

impl Fifths {
    fn new(stream: &Stream, phrases: &[(Range<usize>, &str)]) -> Fifths {
        let sample = stream.sample(usize::MAX).unwrap();
        let layout = action_layout(&sample, &RobotLayout::of(&sample)).unwrap();
        let phrases = phrases.iter().map(|(range, name)| (range.clone(), (*name).to_owned())).collect();
        Fifths { layout, names: (0..5).map(|class| format!("class {class}")).collect(), phrases }
    }
}

impl Cutter for Fifths {
    fn layout(&self) -> &ActionLayout {
        &self.layout
    }

    fn class_names(&self) -> &[String] {
        &self.names
    }

    fn cut(&self, _: &Dataset, _: EpisodeId, motions: &Episode) -> Result<Vec<(ScoredSegment, Option<usize>)>> {
        let place = |part: usize| part * motions.len() / 5;
        let one = |part: usize| (ScoredSegment { rows: place(part)..place(part + 1), confidence: 0.5 }, Some(part));
        Ok((0..5).map(one).collect())
    }

    fn class_of(&self, _: &Episode, rows: &Range<usize>) -> Result<Option<usize>> {
        Ok(Some(rows.len() % 5))
    }

    fn phrases(&self, classes: &[Option<usize>]) -> Vec<(Range<usize>, String)> {
        assert_eq!(classes, [0, 1, 2, 3, 4].map(Some));
        self.phrases.clone()
    }
}

/// A dataset whose instruction nobody understands, so that names come from the motion.
fn without_words(folder: &Path) -> Root {
    let root = arm(folder);
    let whole = Dataset::open(root, &Overrides::default()).unwrap();
    let target = folder.join("wordless");
    let (state, action) = (&whole.roles().state, &whole.roles().action);
    let features = whole.info().features.iter().filter(|(key, _)| [state, action].contains(&key)).cloned().collect();
    let mut writer = Writer::create(&target, WriteOptions::new(whole.info().fps as u32, features)).unwrap();
    for span in whole.spans() {
        let window = whole.window(span.frames.clone());
        let columns =
            [(state.as_str(), ColumnData::F32(window.states)), (action.as_str(), ColumnData::F32(window.actions))];
        writer.add_episode(&EpisodeData { task: "", columns: &columns }).unwrap();
    }
    writer.finish().unwrap();
    Root::Directory(target)
}

#[test]
fn a_phrase_names_the_segments_that_it_covers() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(&without_words(folder.path()));
    let cutter = Fifths::new(&stream, &[(1..3, "fetch"), (4..5, "leave")]);
    let found = annotate(&stream, &cutter, &Names::default(), &Corrections::new(), &|_, _, _| {}).unwrap();
    for (episode, span) in found.episodes.iter().zip(stream.episodes()) {
        let place = |part: usize| part * span.frames.len() / 5;
        let rows: Vec<Range<usize>> = episode.subtasks.iter().map(|one| one.rows.clone()).collect();
        assert_eq!(rows, [0..place(1), place(1)..place(3), place(3)..place(4), place(4)..place(5)]);
        let sources: Vec<NameSource> = episode.subtasks.iter().map(|one| one.named_by).collect();
        use NameSource::{Library, Motion};
        assert_eq!(sources, [Motion, Library, Motion, Library]);
        assert_eq!(found.names[episode.subtasks[1].name], "fetch");
        // The class of most frames, the first of equals.
        assert_eq!(episode.subtasks[3].class, Some(4));
    }
}

#[test]
fn what_a_person_wrote_stands_and_what_is_unchanged_keeps_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(&without_words(folder.path()));
    let cutter = Fifths::new(&stream, &[]);
    let plain = annotate(&stream, &cutter, &Names::default(), &Corrections::new(), &|_, _, _| {}).unwrap();
    let of = |found: &Annotated, at: usize| {
        let subtasks = found.episodes[at].subtasks.iter();
        subtasks.map(|one| (one.rows.clone(), found.names[one.name].clone())).collect::<Vec<_>>()
    };
    // The first two segments of episode 1 become one.
    let mut rows = of(&plain, 1);
    let end = rows.remove(1).0.end;
    rows[0] = (0..end, "get ready".to_owned());
    let corrections = Corrections::from([(1, rows.clone())]);
    let found = annotate(&stream, &cutter, &Names::default(), &corrections, &|_, _, _| {}).unwrap();
    assert_eq!((of(&found, 1), of(&found, 0)), (rows, of(&plain, 0)));
    let episode = &found.episodes[1];
    assert!(episode.corrected && !found.episodes[0].corrected);
    // Equal neighbours are one subtask, so the motion decides how many rows follow the person's.
    let sources: Vec<NameSource> = episode.subtasks.iter().map(|one| one.named_by).collect();
    let unchanged = vec![NameSource::Motion; of(&plain, 1).len() - 2];
    assert!(!unchanged.is_empty());
    assert_eq!(sources, [vec![NameSource::Person], unchanged].concat());
    // Its classes are those of the person's rows.
    assert_eq!(episode.segments[0], (end as u32, Some((end % 5) as u32)));
    // A person's own name is no generated one.
    assert!(!found.vocabulary.contains_key("get ready"));
}

#[test]
fn names_are_replaced_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(&without_words(folder.path()));
    let cutter = Fifths::new(&stream, &[(0..5, "all of it")]);
    let names = Names::parse("[names]\n\"all of it\" = \"everything\"\n").unwrap();
    let found = annotate(&stream, &cutter, &names, &Corrections::new(), &|_, _, _| {}).unwrap();
    assert_eq!(found.names, ["everything"]);
    assert!(found.episodes.iter().all(|episode| episode.subtasks[0].named_by == NameSource::Person));
    let used: BTreeMap<&str, usize> =
        found.vocabulary.iter().map(|(name, used)| (name.as_str(), used.subtasks)).collect();
    assert_eq!(used, BTreeMap::from([("all of it", stream.episodes().len())]));
}

#[test]
fn equal_neighbours_are_one_subtask_unless_a_person_wrote_them() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(&without_words(folder.path()));
    let cutter = Fifths::new(&stream, &[(0..1, "wave"), (1..3, "wave"), (3..5, "rest")]);
    let found = annotate(&stream, &cutter, &Names::default(), &Corrections::new(), &|_, _, _| {}).unwrap();
    let of = |found: &Annotated, at: usize| {
        let subtasks = found.episodes[at].subtasks.iter();
        subtasks.map(|one| (one.rows.clone(), found.names[one.name].clone())).collect::<Vec<_>>()
    };
    let length = stream.episodes()[0].frames.len();
    let place = |part: usize| part * length / 5;
    assert_eq!(of(&found, 0), [(0..place(3), "wave".to_owned()), (place(3)..length, "rest".to_owned())]);
    assert_eq!(found.vocabulary["wave"].subtasks, stream.episodes().len());
    // Rows as they were generated, joined or not, are no correction; names apply to them.
    let names = Names::parse("[names]\n\"wave\" = \"hello\"\n").unwrap();
    let apart = vec![(0..place(1), "wave".to_owned()), (place(1)..place(3), "wave".to_owned())];
    let apart = [apart, vec![(place(3)..length, "rest".to_owned())]].concat();
    for rows in [of(&found, 0), apart] {
        let again = annotate(&stream, &cutter, &names, &Corrections::from([(0, rows)]), &|_, _, _| {}).unwrap();
        assert_eq!(of(&again, 0)[0], (0..place(3), "hello".to_owned()));
        assert!(!again.episodes[0].corrected && again.corrections.is_empty());
    }
    // Two of a person stay two, and what the person left is remembered as it was generated.
    let own = |rows: Range<usize>, name: &str| (rows, name.to_owned());
    let written = vec![own(0..2, "mine"), own(2..place(3), "mine"), own(place(3)..length, "rest")];
    let names = Names::parse("[names]\n\"rest\" = \"pause\"\n").unwrap();
    let corrections = Corrections::from([(0, written)]);
    let again = annotate(&stream, &cutter, &names, &corrections, &|_, _, _| {}).unwrap();
    let expected = [own(0..2, "mine"), own(2..place(3), "mine"), own(place(3)..length, "pause")];
    assert_eq!((of(&again, 0), &again.corrections), (expected.to_vec(), &corrections));
}
