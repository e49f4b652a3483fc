//! `meta/tasks.parquet` and `meta/episodes`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};

use crate::set::{EPISODES, Set, TASKS, place};
use crate::told;

#[test]
fn no_tasks() {
    let set = Set::sound();
    set.remove(TASKS);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn tasks_that_break_off() {
    let set = Set::sound();
    set.bytes(TASKS, |bytes| bytes.truncate(bytes.len() / 2));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn tasks_without_words() {
    let set = Set::sound();
    set.table(TASKS, |columns| columns.retain(|(name, _)| name == "task_index"));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_task_is_missing() {
    let set = Set::sound();
    set.integers(TASKS, "task_index", |tasks| tasks[1] = 2);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_task_twice() {
    let set = Set::sound();
    set.integers(TASKS, "task_index", |tasks| tasks[1] = 0);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_task_below_zero() {
    let set = Set::sound();
    set.integers(TASKS, "task_index", |tasks| tasks[1] = -1);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn an_episode_with_words_that_no_task_has() {
    let set = Set::sound();
    set.table(TASKS, |columns| {
        let words: ArrayRef = Arc::new(StringArray::from(vec!["pour the water", "put the cup away"]));
        let (_, column) = columns.iter_mut().find(|(name, _)| name != "task_index").unwrap();
        *column = words;
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn no_episodes() {
    let set = Set::sound();
    set.remove(EPISODES);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_that_break_off() {
    let set = Set::sound();
    set.bytes(EPISODES, |bytes| bytes.truncate(bytes.len() - 100));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_without_rows() {
    let set = Set::sound();
    set.table(EPISODES, |columns| columns.iter_mut().for_each(|(_, column)| *column = column.slice(0, 0)));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_without_columns() {
    let set = Set::sound();
    let lost = ["length", "data/file_index", "videos/front/from_timestamp"];
    set.table(EPISODES, |columns| columns.retain(|(name, _)| !lost.contains(&name.as_str())));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn lengths_that_are_words() {
    let set = Set::sound();
    set.table(EPISODES, |columns| {
        *place(columns, "length") = Arc::new(StringArray::from(vec!["eight", "five", "seven"]));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_length_is_missing() {
    let set = Set::sound();
    set.table(EPISODES, |columns| {
        *place(columns, "length") = Arc::new(Int64Array::from(vec![Some(8), None, Some(7)]));
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn an_episode_is_missing() {
    let set = Set::sound();
    set.keep_rows(EPISODES, &[0, 2]);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn an_episode_twice() {
    let set = Set::sound();
    set.integers(EPISODES, "episode_index", |episodes| episodes[2] = 1);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_wrong_length() {
    let set = Set::sound();
    set.integers(EPISODES, "length", |lengths| lengths[1] = 6);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_gap_between_episodes() {
    let set = Set::sound();
    set.integers(EPISODES, "dataset_from_index", |from| from[2] += 2);
    set.integers(EPISODES, "dataset_to_index", |to| to[2] += 2);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_that_overlap() {
    let set = Set::sound();
    set.integers(EPISODES, "dataset_from_index", |from| from[1] -= 3);
    set.integers(EPISODES, "dataset_to_index", |to| to[1] -= 3);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn an_empty_episode() {
    let set = Set::sound();
    set.integers(EPISODES, "length", |lengths| lengths[1] = 0);
    set.integers(EPISODES, "dataset_to_index", |to| to[1] = 8);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_file_below_zero() {
    let set = Set::sound();
    set.integers(EPISODES, "data/file_index", |files| files[2] = -1);
    set.integers(EPISODES, "videos/front/chunk_index", |chunks| chunks[1] = -7);
    insta::assert_snapshot!(told(&set));
}

/// One gap was told of every episode behind it.
#[test]
fn a_gap_in_front_of_many_episodes() {
    let set = Set::sound();
    let shift = |rows: &mut Vec<i64>| rows[1..].iter_mut().for_each(|row| *row += 5);
    set.integers(EPISODES, "dataset_from_index", shift);
    set.integers(EPISODES, "dataset_to_index", shift);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_gap_before_every_episode() {
    let set = Set::sound();
    let shift = |rows: &mut Vec<i64>| (0..).zip(rows).for_each(|(at, row)| *row += 5 * at + 1);
    set.integers(EPISODES, "dataset_from_index", shift);
    set.integers(EPISODES, "dataset_to_index", shift);
    insta::assert_snapshot!(told(&set));
}

/// A wrong end was told of every episode behind it.
#[test]
fn an_end_that_is_not_the_length() {
    let set = Set::sound();
    set.integers(EPISODES, "dataset_to_index", |to| to[0] += 2);
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_file_of_episodes_twice() {
    let set = Set::sound();
    let copy = EPISODES.replace("file-000", "file-001");
    std::fs::copy(set.path().join(EPISODES), set.path().join(copy)).unwrap();
    insta::assert_snapshot!(told(&set));
}

#[test]
fn episodes_of_a_file_apart() {
    let set = Set::sound();
    set.integers(EPISODES, "data/file_index", |files| *files = vec![0, 1, 0]);
    set.divide_rows(&[&[0..8, 13..20], &[8..10, 10..13]]);
    insta::assert_snapshot!(told(&set));
}
