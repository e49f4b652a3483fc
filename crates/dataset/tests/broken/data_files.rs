//! The data files: whether they are there and whole, and their rows.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int64Array, ListArray, StringArray};
use serde_json::json;

use crate::set::{DATA, EPISODES, INFO, Set, place};
use crate::told;

/// A column of vectors.
pub(crate) fn vectors<const WIDTH: usize>(rows: &[[f32; WIDTH]]) -> ArrayRef {
    ragged(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

/// A column of lists.
fn ragged(rows: &[Vec<f32>]) -> ArrayRef {
    let rows = rows.iter().map(|row| Some(row.iter().map(|value| Some(*value)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}

/// A sound set with a column of the second data file replaced.
fn with_column(name: &str, column: ArrayRef) -> Set {
    let set = Set::sound();
    set.table(DATA[1], |columns| *place(columns, name) = column);
    set
}

#[test]
fn a_data_file_is_missing() {
    let set = Set::sound();
    set.remove(DATA[1]);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_data_file_breaks_off() {
    let set = Set::sound();
    set.bytes(DATA[0], |bytes| bytes.truncate(bytes.len() / 2));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_data_file_is_empty() {
    let set = Set::sound();
    set.bytes(DATA[0], Vec::clear);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_footer_of_rubbish() {
    let set = Set::sound();
    set.bytes(DATA[0], |bytes| {
        let end = bytes.len() - 8;
        bytes[end - 300..end].iter_mut().for_each(|byte| *byte = 0xa5);
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn rows_of_rubbish() {
    let set = Set::sound();
    set.bytes(DATA[0], |bytes| bytes[4..200].iter_mut().for_each(|byte| *byte = 0x5a));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn fewer_rows_than_the_episodes_have() {
    let set = Set::sound();
    set.table(DATA[0], |columns| columns.iter_mut().for_each(|(_, column)| *column = column.slice(0, 11)));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn more_rows_than_the_episodes_have() {
    let set = Set::sound();
    set.integers(EPISODES, "length", |lengths| lengths[2] = 5);
    set.integers(EPISODES, "dataset_to_index", |to| to[2] -= 2);
    set.json(INFO, |info| info["total_frames"] = 18.into());
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_gap_in_index() {
    let set = Set::sound();
    set.integers(DATA[1], "index", |indices| indices[4..].iter_mut().for_each(|index| *index += 1));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn frame_index_out_of_step() {
    let set = Set::sound();
    set.integers(DATA[0], "frame_index", |frames| frames.swap(3, 4));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_row_of_another_episode() {
    let set = Set::sound();
    set.integers(DATA[0], "episode_index", |episodes| episodes[5] = 2);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn timestamps_off_the_rate() {
    let times = [0.0, 0.05, 0.1, 0.15, 0.22, 0.25, 0.3001];
    let set = with_column("timestamp", Arc::new(Float32Array::from(times.to_vec())));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn another_rate_than_recorded() {
    let set = Set::sound();
    set.json(INFO, |info| info["fps"] = 30.into());
    insta::assert_snapshot!(told(&set));
}

#[test]
fn numbers_that_are_none() {
    let set = Set::sound();
    set.table(DATA[1], |columns| {
        *place(columns, "observation.state") = vectors(&[[0.1, f32::NAN, 0.2], [0.0; 3]].repeat(4)[..7]);
        *place(columns, "action") = vectors(&[[f32::NEG_INFINITY; 2], [0.0; 2]].repeat(4)[..7]);
        *place(columns, "next.reward") =
            Arc::new(Float32Array::from(vec![0.0, 0.0, f32::INFINITY, 0.0, 0.0, 0.0, 1.0]));
    });
    insta::assert_snapshot!(told(&set));
}

/// An action of 6.6e22 was "sound, with 1 warning", and training met NaN with the advice to lower the learning rate.
#[test]
fn finding_5_garbage_is_refused_by_validation_and_by_training_alike() {
    let set = Set::sound();
    set.table(DATA[1], |columns| {
        let mut actions = [[0.1, -0.2]; 7];
        actions[4][1] = 6.6e22;
        *place(columns, "action") = vectors(&actions);
        let mut states = [[0.1, 0.5, 0.2]; 7];
        states[2][2] = f32::NAN;
        *place(columns, "observation.state") = vectors(&states);
    });
    let report = dataset::validate(set.root(), &dataset::Overrides::default(), &Default::default(), &|_| {});
    assert_eq!(report.errors(), 2);
    let opened = dataset::Dataset::open(set.root(), &dataset::Overrides::default()).unwrap();
    let refused = opened.check_numbers().unwrap_err();
    let of = |faults: &[dataset::Fault]| dataset::explain(&faults[..2]);
    assert_eq!(of(&report.faults), of(refused.faults()), "both say the same");
    insta::assert_snapshot!(of(refused.faults()), @"
    error: column `observation.state.z` of `data/chunk-000/file-001.parquet` is NaN in row 2 (episode 2)
      expected  finite numbers
    hint: such a row spoils everything that is measured or learned; correct the number, record the episode again, or remove it with `lerobot-edit-dataset --operation.type delete_episodes`

    error: column `action[1]` of `data/chunk-000/file-001.parquet` is 6.6e22 in row 4 (episode 2)
      expected  a number of the usual size: half of the values of this column are below 1
    ");
    let sound = dataset::Dataset::open(Set::sound().root(), &dataset::Overrides::default()).unwrap();
    sound.check_numbers().unwrap();
}

#[test]
fn columns_are_missing() {
    let set = Set::sound();
    let lost = ["action", "wrist", "index"];
    set.table(DATA[1], |columns| columns.retain(|(name, _)| !lost.contains(&name.as_str())));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn columns_of_other_types() {
    let set = Set::sound();
    set.table(DATA[1], |columns| {
        *place(columns, "action") = Arc::new(StringArray::from(vec!["left"; 7]));
        *place(columns, "observation.state") = Arc::new(Float32Array::from(vec![0.5; 7]));
        *place(columns, "phase") = Arc::new(Float32Array::from(vec![0.5; 7]));
        *place(columns, "next.done") = Arc::new(Int64Array::from(vec![0, 0, 0, 0, 0, 0, 1]));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn vectors_of_another_width() {
    insta::assert_snapshot!(told(&with_column("action", vectors(&[[0.5; 3]; 7]))));
}

#[test]
fn a_vector_of_another_width() {
    let mut rows = vec![vec![0.5; 2]; 7];
    rows[4] = vec![0.5; 1];
    insta::assert_snapshot!(told(&with_column("action", ragged(&rows))));
}

#[test]
fn rows_without_a_value() {
    let set = Set::sound();
    set.table(DATA[1], |columns| {
        let actions = [Some(vec![Some(0.1), None]), None].into_iter().cycle().take(7);
        *place(columns, "action") = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(actions));
        let mut phases = vec![Some(1); 7];
        phases[2] = None;
        phases[6] = None;
        *place(columns, "phase") = Arc::new(Int64Array::from(phases));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn tasks_that_nobody_knows() {
    let set = Set::sound();
    set.integers(DATA[0], "task_index", |tasks| {
        tasks[0] = 7;
        tasks[1] = 7;
        tasks[2] = -1;
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn an_end_before_the_end() {
    let done = [true, false, false, true, false, false, true];
    insta::assert_snapshot!(told(&with_column("next.done", Arc::new(BooleanArray::from(done.to_vec())))));
}

#[test]
fn episodes_that_do_not_end() {
    let set = Set::sound();
    set.table(DATA[0], |columns| *place(columns, "next.done") = Arc::new(BooleanArray::from(vec![false; 13])));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn things_that_nobody_lists() {
    let set = Set::sound();
    set.table(DATA[0], |columns| columns.push(("torque".to_string(), Arc::new(Int64Array::from(vec![0; 13])))));
    std::fs::copy(set.path().join(DATA[0]), set.path().join("data/chunk-000/file-002.parquet")).unwrap();
    std::fs::copy(set.path().join(DATA[0]), set.path().join("data/chunk-000/file-003.parquet")).unwrap();
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_width_that_no_memory_holds() {
    let set = Set::sound();
    set.json(INFO, |info| info["features"]["action"]["shape"] = json!([65536]));
    insta::assert_snapshot!(told(&set));
}
