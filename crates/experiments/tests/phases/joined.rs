//! One source of several datasets: the embedded one, cut in two.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{
    CameraId, Dataset, Dtype, EpisodeId, FRAGMENT_LENGTH, Feature, Frame, FrameIndex, FrameOptions, FrameReader,
    Overrides, embedded,
};
use experiments::cycle::annotation::{NearestSkill, RunAnnotation, RunSkills, SegmentLabeller};
use experiments::cycle::{Event, Extensions, RunOptions, run};
use experiments::source::Origin;
use experiments::{Device, FeatureChoice, Prepared, Source};
use models::{Precision, Scales};
use skills::SkillId;
use subtasks::robot::action_layout;

use super::cycle::settings;

const CAMERA: &str = "observation.images.image";

/// The side of pictures, of which every sixteenth pixel is kept.
const SIDE: usize = 8;

fn whole() -> Dataset {
    Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap()
}

fn downsampled(frame: &Frame) -> Frame {
    let step = frame.width / SIDE;
    let pixel = |at: usize| &frame.pixels[(at / SIDE * step * frame.width + at % SIDE * step) * 3..][..3];
    let pixels: Vec<u8> = (0..SIDE * SIDE).flat_map(|at| pixel(at).to_vec()).collect();
    Frame { width: SIDE, height: SIDE, pixels: Arc::from(pixels) }
}

/// Writes some episodes of the embedded dataset with one camera.
fn write(dataset: &Dataset, episodes: Range<usize>, target: &Path) {
    let (info, columns) = (dataset.info(), dataset.columns());
    let feature = |key: &str| (key.to_owned(), info.feature(key).unwrap().clone());
    let keys = ["observation.state", "action", "next.reward", "phase"];
    let mut features: Vec<(String, Feature)> = keys.map(feature).to_vec();
    features.push((CAMERA.to_owned(), Feature::new(Dtype::Image, &[SIDE, SIDE, 3])));
    let mut writer = Writer::create(target, WriteOptions::new(info.fps as u32, features)).unwrap();
    let reader = FrameReader::new(dataset, FrameOptions::default());
    for episode in episodes {
        let span = &dataset.spans()[episode];
        let frames = span.frames.clone();
        let wanted: Vec<_> = frames.clone().map(|at| (CameraId(0), FrameIndex(at))).collect();
        let pictures: Vec<Frame> = reader.read(&wanted).unwrap().iter().map(downsampled).collect();
        let columns = [
            ("observation.state", ColumnData::F32(columns.states.rows(frames.clone()))),
            ("action", ColumnData::F32(columns.actions.rows(frames.clone()))),
            ("next.reward", ColumnData::F32(&columns.rewards.as_ref().unwrap()[frames.clone()])),
            ("phase", ColumnData::I64(&columns.labels["phase"][frames])),
            (CAMERA, ColumnData::Images(&pictures)),
        ];
        writer.add_episode(&EpisodeData { task: &dataset.tasks()[span.task.at()], columns: &columns }).unwrap();
    }
    writer.name_values("phase", &dataset.label_names("phase").unwrap()).unwrap();
    writer.finish().unwrap();
}

fn open(path: &Path) -> Source {
    let choice = FeatureChoice { encoder: Some("pixels:2".to_owned()), cache: None, ..Default::default() };
    Source::open(path.to_str().unwrap(), &Overrides::default(), &choice, &mut |_| {}).unwrap()
}

#[test]
fn a_dataset_that_was_cut_in_two_is_joined_again() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = whole();
    let place = |name: &str| folder.path().join(name);
    write(&embedded, 0..36, &place("all"));
    write(&embedded, 0..18, &place("first"));
    write(&embedded, 18..36, &place("second"));
    let (all, joined) =
        (open(&place("all")), Source::join(vec![open(&place("first")), open(&place("second"))]).unwrap());
    assert_eq!(joined.name, "first + second");
    assert_eq!(joined.dataset.columns(), all.dataset.columns());
    assert_eq!(joined.dataset.spans(), all.dataset.spans());
    assert_eq!(joined.dataset.tasks(), all.dataset.tasks());
    assert_eq!(joined.record().fingerprint, all.record().fingerprint);
    let names: Vec<String> = joined.record().datasets.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(joined.origin(EpisodeId(17)), Origin { dataset: 0, episode: EpisodeId(17) });
    assert_eq!(joined.origin(EpisodeId(18)), Origin { dataset: 1, episode: EpisodeId(0) });

    // The same scales and the same tensors.
    let episodes: Vec<EpisodeId> = (0..30).map(EpisodeId).collect();
    let scales = Scales::over(&all.dataset, &all.caches, &episodes).unwrap();
    assert_eq!(Scales::over(&joined.dataset, &joined.caches, &episodes).unwrap(), scales);
    let last = joined.dataset.frames() - FRAGMENT_LENGTH;
    let across = joined.dataset.spans()[18].frames.start;
    let gathered = |source: Source| {
        let prepared = Prepared::new(source, Some(1), FRAGMENT_LENGTH).unwrap();
        let table = prepared.table(scales.clone(), &Device::Cpu, Precision::F32, 0.9).unwrap();
        let batch = table.gather(&[0, across - FRAGMENT_LENGTH, across, last], FRAGMENT_LENGTH).unwrap();
        let tensors = [batch.features, batch.states, batch.actions, batch.returns.unwrap()];
        (tensors.map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()), prepared.split)
    };
    let ((tensors, split), (wanted, _)) = (gathered(joined), gathered(all));
    assert!(tensors == wanted && !tensors[0].is_empty());
    // The last round of each half is held out.
    let held_out: Vec<usize> = split.held_out.iter().map(|episode| episode.at()).collect();
    assert_eq!(held_out, (9..18).chain(27..36).collect::<Vec<_>>());

    // An episode that one dataset holds out is held out in the other as well, where it would be learned from.
    let overlapping = Source::join(vec![open(&place("all")), open(&place("first"))]).unwrap();
    assert_eq!(overlapping.notes, ["18 episodes occur in more than one of the datasets"]);
    let split = Prepared::new(overlapping, Some(1), FRAGMENT_LENGTH).unwrap().split;
    let held_out: Vec<usize> = split.held_out.iter().map(|episode| episode.at()).collect();
    assert_eq!(held_out, (9..18).chain(27..36).chain(45..54).collect::<Vec<_>>());
    assert_eq!(split.train.len(), 27);

    one_library_comes_from_both(&place("first"), &place("second"), &place("run"));
}

/// The whole loop on both halves, and its skills in a dataset.
fn one_library_comes_from_both(first: &Path, second: &Path, out: &Path) {
    let prepared =
        Prepared::new(Source::join(vec![open(first), open(second)]).unwrap(), None, FRAGMENT_LENGTH).unwrap();
    let mut settings = settings();
    settings.cycle.iterations = 1;
    let options = RunOptions {
        out,
        resume: false,
        preset: "tiny",
        seed: 5,
        device: &Device::Cpu,
        stop: None,
        transport: std::sync::Arc::new(models::training::distributed::Alone::default()),
        observer: &mut |_: Event<'_>| {},
        extensions: Extensions::default(),
        runs_on: "cpu".to_owned(),
        command: "refactor-vla run".to_owned(),
    };
    let summary = run(&prepared, &settings, options).unwrap().unwrap();
    assert_eq!((summary.dataset.as_str(), summary.demonstrations), ("first + second", (18, 18)));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("first + second") && page.contains("data:image/jpeg"), "pictures of both datasets");

    // Every episode of the embedded dataset was seen in one of the halves.
    let dataset = whole();
    let known = RunSkills::load(out).unwrap();
    let found = known.annotate(&dataset, &NearestSkill(&known.alphabet)).unwrap();
    assert_eq!((found.seen, found.labelled, found.notes.len()), (36, 0, 0));
    assert!(found.values.iter().all(|value| *value >= 0), "every frame has a skill");
    assert_eq!(found.names.len(), summary.skills);
    assert_eq!(found.names.iter().collect::<BTreeSet<_>>().len(), summary.skills, "names differ");
    assert!(found.names.iter().all(|name| name.contains(" · ")), "{:?}", found.names);
    // A skill that moves up is called so.
    let RunAnnotation { skills, .. } = known.annotation.as_ref().unwrap();
    assert!(skills.iter().any(|skill| skill.name.contains("gripper")), "{:?}", found.names);

    // Without its own episodes, the run labels them anew: cut the same way, mostly by the same skills.
    let mut new = RunSkills::load(out).unwrap();
    new.annotation.as_mut().unwrap().episodes.clear();
    let labelled = new.annotate(&dataset, &NearestSkill(&new.alphabet)).unwrap();
    assert_eq!((labelled.seen, labelled.labelled), (0, 36));
    let agree = labelled.values.iter().zip(&found.values).filter(|(one, other)| one == other).count();
    assert!(agree as f64 > 0.25 * dataset.frames() as f64, "{agree} of {}", dataset.frames());

    // Any other labeller may take its place.
    let single = new.annotate(&dataset, &Always).unwrap();
    assert!(single.values.iter().all(|value| *value == 0));
    let other = known.annotate(&pour(&out.with_file_name("pour")), &Always).unwrap_err().to_string();
    assert!(other.contains("columns, those of the run's skills 7"), "{other}");
}

/// Labels every segment as the first skill.
struct Always;

impl SegmentLabeller for Always {
    fn method(&self) -> &str {
        "the first skill"
    }

    fn skills(&self, _: &skills::Episode, segments: &[Range<usize>]) -> experiments::Result<Vec<Option<SkillId>>> {
        Ok(vec![Some(SkillId(0)); segments.len()])
    }
}

fn pour(place: &Path) -> Dataset {
    dataset::recursive_pour::write(place, 1, 11).unwrap();
    Dataset::open(dataset::Root::Directory(place.to_owned()), &Overrides::default()).unwrap()
}

#[test]
fn datasets_that_differ_are_not_joined() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pour");
    pour(&place);
    let refused = |one: Source, other: Source| Source::join(vec![one, other]).err().unwrap().to_string();
    let choice = FeatureChoice::default();
    let libero = || Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap();
    let error = refused(libero(), open(&place));
    assert!(error.contains("`libero_goal_mini` and `pour` cannot be joined: states have 8 columns"), "{error}");
    // Features by another encoder mean something else.
    let pixels = FeatureChoice { encoder: Some("pixels:1".to_owned()), cache: None, ..Default::default() };
    let other = Source::open("embedded:libero_goal_mini", &Overrides::default(), &pixels, &mut |_| {}).unwrap();
    let error = refused(libero(), other);
    assert!(error.starts_with("features are by different encoders: `embedded:libero_goal_mini` by dinov2"), "{error}");
    // The same dataset twice is two datasets with the same episodes, of which none is learned from and held out.
    let twice = Source::join(vec![libero(), libero()]).unwrap();
    assert_eq!(twice.name, "embedded:libero_goal_mini + embedded:libero_goal_mini (2)");
    assert_eq!(twice.notes, ["36 episodes occur in more than one of the datasets"]);
    let prepared = Prepared::new(twice, None, FRAGMENT_LENGTH).unwrap();
    let contents = |episodes: &[EpisodeId]| prepared.contents(episodes).into_iter().collect::<BTreeSet<_>>();
    assert!(contents(&prepared.split.train).is_disjoint(&contents(&prepared.split.held_out)));
    assert_eq!((prepared.split.train.len(), prepared.split.held_out.len()), (54, 18));
}

#[test]
fn finding_2_seven_joints_have_no_gripper_and_are_written_as_joints() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("joints");
    let joints: Vec<String> = (0..7).map(|at| format!("joint_{at}")).collect();
    let joints: Vec<&str> = joints.iter().map(String::as_str).collect();
    let vector = || Feature::new(Dtype::Float32, &[7]).named(&joints);
    let features = vec![("observation.state".to_owned(), vector()), ("action".to_owned(), vector())];
    let mut writer = Writer::create(&place, WriteOptions::new(10, features)).unwrap();
    for episode in 0..2 {
        let values: Vec<f32> = (0..20 * 7).map(|at| ((at + episode) as f32).sin()).collect();
        let columns = [("observation.state", ColumnData::F32(&values)), ("action", ColumnData::F32(&values))];
        writer.add_episode(&EpisodeData { task: "wave", columns: &columns }).unwrap();
    }
    writer.finish().unwrap();
    let prepared = Prepared::new(open(&place), None, FRAGMENT_LENGTH).unwrap();
    assert_eq!(prepared.robot().grippers().count(), 0);
    let layout = action_layout(&prepared.source.dataset, prepared.robot()).unwrap();
    let [arm] = &layout.groups[..] else { panic!("{layout:?}") };
    assert_eq!((arm.columns.len(), &arm.space, layout.grippers.len()), (7, &skills::Space::Joints, 0));
    let libero = crate::prepared();
    let libero = action_layout(&libero.source.dataset, libero.robot()).unwrap();
    let (found, expected) = (&libero.groups[0], &skills::ActionLayout::libero().groups[0]);
    assert_eq!((&found.columns, &found.states, found.control), (&expected.columns, &expected.states, expected.control));
    assert_eq!(libero.grippers, skills::ActionLayout::libero().grippers);
}
