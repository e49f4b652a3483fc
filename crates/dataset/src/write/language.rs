//! Subtasks as lerobot's language columns: `language_persistent` and `language_events`, as of lerobot 0.6.
//!
//! Documented in lerobot's `docs/source/language_and_recipes.mdx`; the schema is that of its `datasets/language.py`:
//!
//! ```text
//! language_persistent: list<struct<role, content, style: string, timestamp: float32, camera: string, tool_calls: list<string>>>
//! language_events:     the same without `timestamp`
//! ```
//! Every frame of an episode has all persistent rows of the episode; a row holds from its timestamp until the next of its
//! style. A subtask is a row with role `assistant`, style `subtask` and the timestamp of its first frame as the data file
//! has it. There are no events, so every frame has an empty list. lerobot drops `subtask_index` from such a dataset, and
//! versions before 0.5 cannot open it.
//!
//! Rows of other styles, such as plans, and events belong to somebody else: they are kept, before ours.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float32Type;
use arrow_array::{Array as _, ArrayRef, Float32Array, ListArray, StringArray, StructArray, UInt64Array};
use arrow_array::{new_empty_array, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use serde_json::{Value, json};

use super::runs::FrameValues;
use crate::fault::Error;
use crate::files::Root;
use crate::table::Table;

/// The column with rows that hold for a stretch of an episode.
pub const LANGUAGE_PERSISTENT: &str = "language_persistent";

/// The column with rows that belong to a single frame.
pub const LANGUAGE_EVENTS: &str = "language_events";

/// Subtasks to be written as language columns.
#[derive(Clone, Copy)]
pub(super) struct Language<'a> {
    /// For each frame the place of its subtask in the names.
    pub subtasks: &'a dyn FrameValues,
    /// The names.
    pub names: &'a [String],
}

/// The fields of both columns.
pub(super) fn fields() -> [Field; 2] {
    let list = |fields: Fields| DataType::List(Arc::new(Field::new("element", DataType::Struct(fields), true)));
    [
        Field::new(LANGUAGE_PERSISTENT, list(row_fields(true)), true),
        Field::new(LANGUAGE_EVENTS, list(row_fields(false)), true),
    ]
}

/// Both columns as `info.json` has them.
pub(super) fn described() -> Value {
    json!({"dtype": "language", "shape": [1], "names": null})
}

fn row_fields(persistent: bool) -> Fields {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let calls = DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)));
    let mut fields = vec![text("role"), text("content"), text("style")];
    if persistent {
        fields.push(Field::new("timestamp", DataType::Float32, true));
    }
    fields.extend([text("camera"), Field::new("tool_calls", calls, true)]);
    fields.into()
}

/// One subtask of an episode: when it starts in seconds, and its name.
pub(super) type Row<'a> = (f32, &'a str);

impl Language<'_> {
    /// The subtasks of an episode, given by its frames; `time` is that of a frame.
    pub(super) fn rows(&self, frames: Range<usize>, time: impl Fn(usize) -> f32) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        self.subtasks.runs(frames, &mut |run, name| {
            let name = usize::try_from(name).ok().and_then(|name| self.names.get(name));
            rows.extend(name.map(|name| (time(run.start), name.as_str())));
        });
        rows
    }
}

/// The arrays of both columns, given for each frame of a batch the rows of its episode.
pub(super) fn arrays(frames: &[&[Row<'_>]]) -> Result<[ArrayRef; 2], ArrowError> {
    let rows = || frames.iter().flat_map(|rows| rows.iter());
    let count = rows().count();
    let same = |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, count))) as ArrayRef;
    let fields = row_fields(true);
    let columns: Vec<ArrayRef> = vec![
        same("assistant"),
        Arc::new(StringArray::from_iter_values(rows().map(|(_, name)| name))),
        same("subtask"),
        Arc::new(Float32Array::from_iter_values(rows().map(|(time, _)| *time))),
        new_null_array(&DataType::Utf8, count),
        new_null_array(fields[5].data_type(), count),
    ];
    let [persistent, events] = self::fields();
    let element = |field: &Field| match field.data_type() {
        DataType::List(element) => element.clone(),
        _ => Arc::new(field.clone()),
    };
    let rows = Arc::new(StructArray::try_new(fields, columns, None)?);
    let offsets = OffsetBuffer::from_lengths(frames.iter().map(|rows| rows.len()));
    let persistent = ListArray::try_new(element(&persistent), offsets, rows, None)?;
    let empty = new_empty_array(&DataType::Struct(row_fields(false)));
    let none = OffsetBuffer::from_lengths(frames.iter().map(|_| 0));
    let events = ListArray::try_new(element(&events), none, empty, None)?;
    Ok([Arc::new(persistent), Arc::new(events)])
}

/// The style of rows that are subtasks.
const STYLE: &str = "subtask";

/// Rows of a language column by the frames that have them: for each frame the places of rows that are subtasks, or of the others.
fn places(column: &ListArray, subtasks: bool) -> Vec<Vec<u64>> {
    let rows = column.values().as_struct_opt();
    let styles = rows.and_then(|rows| rows.column_by_name("style")?.as_string_opt::<i32>());
    let is_subtask = |at: usize| styles.is_some_and(|styles| styles.is_valid(at) && styles.value(at) == STYLE);
    let of = |frame: usize| {
        let ends = &column.value_offsets()[frame..frame + 2];
        let all = if column.is_valid(frame) { ends[0] as usize..ends[1] as usize } else { 0..0 };
        all.filter(|at| is_subtask(*at) == subtasks).map(|at| at as u64).collect()
    };
    (0..column.len()).map(of).collect()
}

/// A language column without its subtasks; one of another type stays as it is.
pub(super) fn without_subtasks(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(list) = column.as_list_opt::<i32>() else { return Ok(column.clone()) };
    let kept = places(list, false);
    let offsets = OffsetBuffer::from_lengths(kept.iter().map(Vec::len));
    let rows = arrow_select::take::take(list.values(), &UInt64Array::from(kept.concat()), None)?;
    let DataType::List(element) = list.data_type() else { return Ok(column.clone()) };
    Ok(Arc::new(ListArray::try_new(element.clone(), offsets, rows, list.nulls().cloned())?))
}

/// The rows of an old column that are no subtasks, and in each frame all rows of a new one after them.
pub(super) fn with_others(old: &ArrayRef, new: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let other = || ArrowError::SchemaError(format!("it is {}, not {}", old.data_type(), new.data_type()));
    let (Some(before), Some(after)) = (old.as_list_opt::<i32>(), new.as_list_opt::<i32>()) else { return Err(other()) };
    let kept = places(before, false);
    if kept.iter().all(Vec::is_empty) {
        return Ok(new.clone());
    }
    let (Some(theirs), Some(ours)) = (before.values().as_struct_opt(), after.values().as_struct_opt()) else {
        return Err(other());
    };
    let column =
        |field: &Arc<Field>| theirs.column_by_name(field.name()).filter(|it| it.data_type() == field.data_type());
    let columns: Option<Vec<ArrayRef>> = ours.fields().iter().map(|field| column(field).cloned()).collect();
    let theirs = StructArray::try_new(ours.fields().clone(), columns.ok_or_else(other)?, theirs.nulls().cloned())?;
    let (mut wanted, mut lengths) = (Vec::new(), Vec::new());
    for (frame, kept) in kept.iter().enumerate() {
        let ends = &after.value_offsets()[frame..frame + 2];
        wanted.extend(kept.iter().map(|at| (0, *at as usize)));
        wanted.extend((ends[0] as usize..ends[1] as usize).map(|at| (1, at)));
        lengths.push(kept.len() + (ends[1] - ends[0]) as usize);
    }
    let rows = arrow_select::interleave::interleave(&[&theirs, ours], &wanted)?;
    let DataType::List(element) = new.data_type() else { return Err(other()) };
    Ok(Arc::new(ListArray::try_new(element.clone(), OffsetBuffer::from_lengths(lengths), rows, None)?))
}

/// Whether a data file has events, or rows of other styles than subtasks.
pub(super) fn has_others(source: &Root, file: &str) -> Result<bool, Error> {
    let mut found = false;
    let table = Table::open(source, file)?;
    for key in [LANGUAGE_PERSISTENT, LANGUAGE_EVENTS].into_iter().filter(|key| table.column(key).is_some()) {
        table.scan(&[key], |_, arrays| {
            found |= match arrays[0].as_list_opt::<i32>() {
                Some(list) if key == LANGUAGE_EVENTS => !list.values().is_empty(),
                Some(list) => places(list, false).iter().any(|places| !places.is_empty()),
                None => arrays[0].null_count() < arrays[0].len(),
            };
            Ok(())
        })?;
    }
    Ok(found)
}

/// Adds the subtasks of a language column to a hash: their times and texts in each frame.
pub(super) fn hash_subtasks(column: &ArrayRef, hasher: &mut blake3::Hasher) {
    let Some(list) = column.as_list_opt::<i32>() else { return };
    let rows = list.values().as_struct_opt();
    let texts = rows.and_then(|rows| rows.column_by_name("content")?.as_string_opt::<i32>());
    let times = rows.and_then(|rows| rows.column_by_name("timestamp")?.as_primitive_opt::<Float32Type>());
    for places in places(list, true) {
        hasher.update(&(places.len() as u64).to_le_bytes());
        for at in places.into_iter().map(|at| at as usize) {
            let text = texts.map_or("", |texts| texts.value(at));
            let time = times.map_or(0.0, |times| times.value(at));
            hasher.update(&time.to_le_bytes()).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::Runs;
    use super::*;

    /// A column of two frames with rows of one style: a text for each.
    fn styled(style: &str, text: &str) -> ArrayRef {
        let fields = row_fields(true);
        let one = |text: &str| Arc::new(StringArray::from(vec![text, text])) as ArrayRef;
        let none = |at: usize| new_null_array(fields[at].data_type(), 2);
        let times = Arc::new(Float32Array::from(vec![0.0, 0.0])) as ArrayRef;
        let columns = vec![one("user"), one(text), one(style), times, none(4), none(5)];
        let rows = Arc::new(StructArray::try_new(fields, columns, None).unwrap());
        let [persistent, _] = self::fields();
        let DataType::List(element) = persistent.data_type() else { panic!("{persistent:?}") };
        Arc::new(ListArray::try_new(element.clone(), OffsetBuffer::from_lengths([1, 1]), rows, None).unwrap())
    }

    fn contents(column: &ArrayRef) -> Vec<Vec<String>> {
        let list = column.as_list::<i32>();
        let of = |frame: usize| {
            let rows = list.value(frame);
            let texts = rows.as_struct().column_by_name("content").unwrap().as_string::<i32>();
            texts.iter().map(|text| text.unwrap().to_owned()).collect()
        };
        (0..list.len()).map(of).collect()
    }

    #[test]
    fn rows_of_other_styles_stay() {
        let (plan, old) = (styled("plan", "think"), styled("subtask", "old"));
        let [new, _] = arrays(&[&[(0.0, "reach"), (1.0, "grasp")], &[(0.0, "lift")]]).unwrap();
        let both = with_others(&plan, &new).unwrap();
        assert_eq!(contents(&both), [vec!["think", "reach", "grasp"], vec!["think", "lift"]]);
        assert_eq!(both.data_type(), new.data_type());
        assert_eq!(contents(&with_others(&old, &new).unwrap()), contents(&new));
        assert_eq!(contents(&without_subtasks(&both).unwrap()), contents(&plan));
        // A plan is no subtask, so it changes no hash; a text does.
        let hash = |column: &ArrayRef| {
            let mut hasher = blake3::Hasher::new();
            hash_subtasks(column, &mut hasher);
            hasher.finalize()
        };
        assert_eq!(hash(&both), hash(&new));
        assert_ne!(hash(&old), hash(&styled("subtask", "new")));
    }

    #[test]
    fn every_frame_has_all_subtasks_of_its_episode_and_no_events() {
        let mut subtasks = Runs::default();
        [(2, 0), (1, 1), (2, 0)].into_iter().for_each(|(frames, name)| subtasks.push(frames, name));
        let names = ["reach".to_owned(), "grasp".to_owned()];
        let language = Language { subtasks: &subtasks, names: &names };
        // Times are those of the data, whatever they are.
        let first = language.rows(0..3, |frame| frame as f32 + 0.5);
        let second = language.rows(3..5, |frame| frame as f32);
        assert_eq!((&first[..], &second[..]), (&[(0.5, "reach"), (2.5, "grasp")][..], &[(3.0, "reach")][..]));
        let [persistent, events] = arrays(&[&first, &first, &first, &second, &second]).unwrap();
        let lists = persistent.as_list::<i32>();
        assert_eq!((0..5).map(|frame| lists.value_length(frame)).collect::<Vec<_>>(), [2, 2, 2, 1, 1]);
        let row = lists.value(1);
        let row = row.as_struct();
        let texts = |name: &str| row.column_by_name(name).unwrap().as_string::<i32>().iter().collect::<Vec<_>>();
        assert_eq!(texts("content"), [Some("reach"), Some("grasp")]);
        assert_eq!(
            (texts("role")[0], texts("style")[1], texts("camera")[0]),
            (Some("assistant"), Some("subtask"), None)
        );
        let times = row.column_by_name("timestamp").unwrap().as_primitive::<Float32Type>();
        assert_eq!(times.values()[..], [0.5, 2.5]);
        assert_eq!(row.column_by_name("tool_calls").unwrap().null_count(), 2);
        assert!((0..5).all(|frame| events.as_list::<i32>().value_length(frame) == 0));
        assert_eq!(
            fields().map(|field| field.data_type().clone()),
            [persistent, events].map(|it| it.data_type().clone())
        );
    }
}
