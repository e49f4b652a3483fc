//! What the writer writes, the crate's own reader reads, and its check has nothing to say about.

use super::*;
use crate::open::Dataset;
use crate::roles::Overrides;
use crate::validate::{ValidateOptions, validate};

fn assert_faultless(root: &Root) {
    let options = ValidateOptions { decode: true, stats: true };
    let report = validate(root.clone(), &Overrides::default(), &options, &|_| {});
    assert_eq!(report.faults, []);
    assert!(report.checked.rows > 0);
}

#[test]
fn the_reader_reads_what_the_writer_wrote_and_the_check_finds_nothing() {
    let features = vec![
        ("observation.images.front".to_string(), Feature::new(Dtype::Image, &[6, 8, 3])),
        ("observation.state".to_string(), Feature::new(Dtype::Float32, &[300])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[2]).named(&["x", "y"])),
        ("next.reward".to_string(), Feature::new(Dtype::Float32, &[1])),
        ("phase".to_string(), Feature::new(Dtype::Int(64), &[1])),
        ("note".to_string(), Feature::new(Dtype::Text, &[1])),
    ];
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let options = WriteOptions { data_file_mb: 1, chunks_size: 2, ..WriteOptions::new(10, features) };
    let lengths = [1, 300, 250, 350, 2, 400];
    let (summary, written) = write_random(&target, &options, &lengths, 11).unwrap();
    assert!(summary.data_files > 1);
    let root = Root::Directory(target);
    assert_faultless(&root);
    let dataset = Dataset::open(root.clone(), &Overrides::default()).unwrap();
    let columns = dataset.columns();
    let whole = |at: usize| joined(&written.iter().map(|episode| &episode[at]).collect::<Vec<_>>());
    assert_eq!(Values::F32(columns.states.values.to_vec()), whole(1));
    assert_eq!(Values::F32(columns.actions.values.to_vec()), whole(2));
    assert_eq!(columns.rewards.clone().map(Values::F32), Some(whole(3)));
    assert_eq!(Values::I64(columns.labels["phase"].clone()), whole(4));
    assert_eq!(dataset.tasks(), ["task 0", "task 1"]);
    assert_eq!(dataset.episodes().iter().map(|episode| episode.frames.len()).collect::<Vec<_>>(), lengths);
    // And once more with skills.
    let values: Vec<i64> = (0..dataset.frames() as i64).map(|frame| frame / 50 % 3 - 1).collect();
    let names = ["reach", "grasp"].map(String::from).to_vec();
    let annotation = Annotation { key: "skill".to_string(), names, values: values.clone(), subtasks: true };
    let out = folder.path().join("annotated");
    annotate(&root, &out, &annotation).unwrap();
    let root = Root::Directory(out);
    assert_faultless(&root);
    let annotated = Dataset::open(root, &Overrides::default()).unwrap();
    assert_eq!(annotated.columns().labels["skill"], values);
    assert_eq!(annotated.columns().states, columns.states);
}
