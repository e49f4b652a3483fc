//! Subtasks as a table for other tools and for people: CSV or JSON, written and read back.
//!
//! | column | meaning |
//! |---|---|
//! | `episode` | number of the episode, from 0 |
//! | `start`, `end` | first frame of the subtask and first frame after it, counted from 0 in the episode |
//! | `start_s`, `end_s` | the same in seconds |
//! | `name` | what the robot does |
//! | `class` | class of its motion, found without labels |
//! | `confidence` | how sure the boundary at its start is, 0 to 1 |
//! | `named_by` | `instruction`, `motion`, `library` or `person` |
//!
//! Only `episode`, `start`, `end` and `name` are read back; a file may hold some episodes only, each whole. Rows whose seconds
//! are not those of their frames are reported, since somebody may have edited the seconds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::annotate::Annotated;
use crate::error::{Error, Result};
use crate::subtask::NameSource;

/// The columns of the file.
pub const COLUMNS: [&str; 9] =
    ["episode", "start", "end", "start_s", "end_s", "name", "class", "confidence", "named_by"];

/// A row of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentRow<'a> {
    /// Number of the episode.
    pub episode: usize,
    /// First frame, counted from 0 in the episode.
    pub start: usize,
    /// First frame after it.
    pub end: usize,
    /// The start in seconds.
    pub start_s: f64,
    /// The end in seconds.
    pub end_s: f64,
    /// What the robot does.
    pub name: &'a str,
    /// Class of its motion.
    pub class: Option<usize>,
    /// Confidence of the boundary at its start.
    pub confidence: f64,
    /// Where the name comes from.
    pub named_by: &'static str,
}

/// Subtasks that a person wrote, by episode: rows that cover the episode, with names.
pub type Corrections = BTreeMap<usize, Vec<(Range<usize>, String)>>;

/// All rows of an annotation.
pub fn rows(annotated: &Annotated) -> impl Iterator<Item = SegmentRow<'_>> {
    let seconds = |frame: usize| (frame as f64 / annotated.fps * 1e6).round() / 1e6;
    annotated.episodes.iter().enumerate().flat_map(move |(episode, found)| {
        found.subtasks.iter().map(move |one| SegmentRow {
            episode,
            start: one.rows.start,
            end: one.rows.end,
            start_s: seconds(one.rows.start),
            end_s: seconds(one.rows.end),
            name: annotated.names.get(one.name).map_or("", String::as_str),
            class: one.class,
            confidence: (f64::from(one.boundary_confidence) * 1e4).round() / 1e4,
            named_by: word(one.named_by),
        })
    })
}

/// The rows as CSV (RFC 4180).
pub fn to_csv(annotated: &Annotated) -> String {
    let mut text = format!("{}\n", COLUMNS.join(","));
    for row in rows(annotated) {
        let class = row.class.map_or_else(String::new, |class| class.to_string());
        let SegmentRow { episode, start, end, start_s, end_s, confidence, named_by, .. } = row;
        let name = quoted(row.name);
        let _ = writeln!(text, "{episode},{start},{end},{start_s},{end_s},{name},{class},{confidence},{named_by}");
    }
    text
}

/// The rows as a JSON list.
///
/// # Errors
/// If a number is not finite.
pub fn to_json(annotated: &Annotated) -> Result<String> {
    let rows: Vec<SegmentRow<'_>> = rows(annotated).collect();
    let text = serde_json::to_string_pretty(&rows).map_err(|error| Error::Segments(vec![error.to_string()]))?;
    Ok(format!("{text}\n"))
}

/// Where the subtasks that a person corrected are in an annotated dataset.
pub const CORRECTIONS: &str = "meta/subtasks_corrections.csv";

/// Corrections as CSV, with the columns that are read back.
pub fn corrections_csv(corrections: &Corrections) -> String {
    let mut text = "episode,start,end,name\n".to_owned();
    for (episode, rows) in corrections {
        for (rows, name) in rows {
            let _ = writeln!(text, "{episode},{},{},{}", rows.start, rows.end, quoted(name));
        }
    }
    text
}

/// What a table says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The subtasks.
    pub corrections: Corrections,
    /// Episodes and the places in the text where seconds are not those of the frames, in the order of the text.
    pub other_seconds: Vec<(usize, String)>,
}

/// Reads rows that a person wrote or edited; JSON, if the text starts with a bracket. `lengths` are those of the dataset's
/// episodes in frames, of which there are `fps` in a second.
///
/// # Errors
/// On all rows that are wrong, and on gaps and overlaps.
pub fn read(text: &str, lengths: &[usize], fps: f64) -> Result<Table> {
    let mut problems = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    let rows = match text.trim_start().starts_with(['[', '{']) {
        true => json_rows(text, &mut problems),
        false => csv_rows(text, &mut problems),
    };
    let mut episodes: BTreeMap<usize, Vec<Read>> = BTreeMap::new();
    let mut other_seconds = Vec::new();
    for row in rows {
        // Half a frame is what rounding may do.
        let differs =
            |seconds: Option<f64>, frame: usize| seconds.is_some_and(|it| (it * fps - frame as f64).abs() > 0.5);
        for (column, seconds, frame) in [("start", row.seconds[0], row.start), ("end", row.seconds[1], row.end)] {
            if differs(seconds, frame) {
                let (found, own) = (seconds.unwrap_or_default(), (frame as f64 / fps * 1e3).round() / 1e3);
                let place = &row.place;
                let told =
                    format!("{place}: `{column}_s` is {found}, `{column}` is frame {frame}, which is at {own} s");
                other_seconds.push((row.episode, told));
            }
        }
        match lengths.get(row.episode) {
            None => problems.push(format!(
                "{}: there is no episode {}; the dataset has {}",
                row.place,
                row.episode,
                lengths.len()
            )),
            Some(length) if row.start >= row.end || row.end > *length => problems.push(format!(
                "{}: frames {} to {} are not a stretch of episode {}, which has {length} frames",
                row.place, row.start, row.end, row.episode
            )),
            Some(_) if row.name.trim().is_empty() => problems.push(format!("{}: the name is empty", row.place)),
            Some(_) => episodes.entry(row.episode).or_default().push(row),
        }
    }
    let mut found = Corrections::new();
    for (episode, mut rows) in episodes {
        rows.sort_by_key(|row| (row.start, row.end));
        let mut next = 0;
        for row in &rows {
            if row.start < next {
                problems.push(format!(
                    "{}: starts at frame {} of episode {episode}, before frame {next} where the one before it ends",
                    row.place, row.start
                ));
            } else if row.start > next {
                problems.push(format!(
                    "{}: frames {next} to {} of episode {episode} have no subtask",
                    row.place, row.start
                ));
            }
            next = next.max(row.end);
        }
        if next < lengths[episode] {
            problems.push(format!("frames {next} to {} of episode {episode} have no subtask", lengths[episode]));
        }
        found.insert(episode, rows.into_iter().map(|row| (row.start..row.end, row.name.trim().to_owned())).collect());
    }
    if problems.is_empty() && found.is_empty() {
        problems.push("it has no rows".to_owned());
    }
    match problems.is_empty() {
        true => Ok(Table { corrections: found, other_seconds }),
        false => Err(Error::Segments(problems)),
    }
}

/// Where a name comes from, in one word.
pub fn word(source: NameSource) -> &'static str {
    match source {
        NameSource::Instruction => "instruction",
        NameSource::Motion => "motion",
        NameSource::Library => "library",
        NameSource::Person => "person",
    }
}

/// A row as it was read.
struct Read {
    /// Such as `line 3`.
    place: String,
    episode: usize,
    start: usize,
    end: usize,
    name: String,
    /// Start and end in seconds, where they are given and are numbers.
    seconds: [Option<f64>; 2],
}

fn json_rows(text: &str, problems: &mut Vec<String>) -> Vec<Read> {
    #[derive(Deserialize)]
    struct Row {
        episode: usize,
        start: usize,
        end: usize,
        name: String,
        #[serde(default)]
        start_s: serde_json::Value,
        #[serde(default)]
        end_s: serde_json::Value,
    }
    let rows: Vec<serde_json::Value> = match serde_json::from_str(text) {
        Ok(rows) => rows,
        Err(error) => {
            problems.push(format!("it is not a JSON list: {error}"));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        match serde_json::from_value::<Row>(row) {
            Ok(Row { episode, start, end, name, start_s, end_s }) => {
                let seconds = [start_s.as_f64(), end_s.as_f64()];
                found.push(Read { place: format!("row {at}"), episode, start, end, name, seconds });
            }
            Err(error) => problems.push(format!("row {at}: {error}")),
        }
    }
    found
}

fn csv_rows(text: &str, problems: &mut Vec<String>) -> Vec<Read> {
    let records = match records(text) {
        Ok(records) => records,
        Err(line) => {
            problems.push(format!("line {line}: a quote is opened that is not closed"));
            return Vec::new();
        }
    };
    let mut records = records.into_iter();
    let Some((_, header)) = records.next() else { return Vec::new() };
    let place = |name: &str| header.iter().position(|column| column.trim() == name);
    let wanted = ["episode", "start", "end", "name"];
    let missing: Vec<&str> = wanted.into_iter().filter(|name| place(name).is_none()).collect();
    let [Some(episode), Some(start), Some(end), Some(name)] = wanted.map(place) else {
        problems.push(format!("its first line has no column `{}`", missing.join("`, `")));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (line, fields) in records {
        if fields.len() != header.len() {
            problems.push(format!("line {line}: {} fields, the first line has {}", fields.len(), header.len()));
            continue;
        }
        let mut number = |at: usize| {
            // Spreadsheets write whole numbers as `12.0` at times.
            let written = fields[at].trim().trim_end_matches(".0");
            let read = written.parse::<usize>().ok();
            if read.is_none() {
                problems.push(format!("line {line}: `{}` is `{}`, not a number from 0", header[at], fields[at]));
            }
            read
        };
        // Spreadsheets of some languages write a comma in numbers.
        let seconds = ["start_s", "end_s"].map(|column| fields[place(column)?].trim().replace(',', ".").parse().ok());
        if let [Some(episode), Some(start), Some(end)] = [episode, start, end].map(&mut number) {
            let (place, name) = (format!("line {line}"), fields[name].clone());
            found.push(Read { place, episode, start, end, name, seconds });
        }
    }
    found
}

/// The records of a CSV text with the lines that they start in, from 1; empty lines are left out. Semicolons separate fields
/// where the first line has more of them than commas, as spreadsheets of some languages write it. The line of a quote that is
/// not closed is the error.
fn records(text: &str) -> std::result::Result<Vec<(usize, Vec<String>)>, usize> {
    let first = text.lines().next().unwrap_or_default();
    let comma = if first.matches(';').count() > first.matches(',').count() { ';' } else { ',' };
    let (mut records, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut inside, mut opened) = (1, 1, false, 1);
    let mut letters = text.chars().peekable();
    let mut end = |fields: &mut Vec<String>, field: &mut String, start: usize| {
        fields.push(std::mem::take(field));
        let record = std::mem::take(fields);
        if record.len() > 1 || !record[0].trim().is_empty() {
            records.push((start, record));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '"' if inside && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' if inside => inside = false,
            '"' if field.is_empty() => (inside, opened) = (true, line),
            letter if letter == comma && !inside => fields.push(std::mem::take(&mut field)),
            '\r' if !inside && letters.peek() == Some(&'\n') => {}
            '\n' if !inside => {
                end(&mut fields, &mut field, start);
                line += 1;
                start = line;
            }
            letter => {
                line += usize::from(letter == '\n');
                field.push(letter);
            }
        }
    }
    if !field.is_empty() || !fields.is_empty() {
        end(&mut fields, &mut field, start);
    }
    if inside { Err(opened) } else { Ok(records) }
}

/// A field of CSV, in quotes where it needs them.
fn quoted(text: &str) -> String {
    match text.contains(['"', ',', ';', '\n', '\r']) || text.trim() != text {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::{EpisodeSubtasks, Labelled};

    fn annotated() -> Annotated {
        let names = ["grasp the \"milk\", gently", "lift\nit", "move away; slowly"].map(str::to_owned).to_vec();
        let one = |rows: Range<usize>, name: usize| Labelled {
            rows,
            name,
            named_by: NameSource::Instruction,
            class: (name > 0).then_some(name),
            boundary_confidence: 0.123_456,
            name_confidence: 1.0,
        };
        let episode = |ends: [usize; 2]| EpisodeSubtasks {
            subtasks: vec![one(0..ends[0], 0), one(ends[0]..ends[1], 1)],
            ..EpisodeSubtasks::default()
        };
        let whole = EpisodeSubtasks { subtasks: vec![one(0..7, 2)], ..EpisodeSubtasks::default() };
        Annotated { names, episodes: vec![episode([3, 9]), whole, episode([1, 2])], fps: 30.0, ..Annotated::default() }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let annotated = annotated();
        let lengths = [9, 7, 2];
        let csv = to_csv(&annotated);
        assert!(
            csv.starts_with("episode,start,end,start_s,end_s,name,class,confidence,named_by\n0,0,3,0,0.1,\"grasp"),
            "{csv}"
        );
        let from_csv = read(&csv, &lengths, 30.0).unwrap();
        assert_eq!(from_csv.other_seconds, []);
        assert_eq!(read(&to_json(&annotated).unwrap(), &lengths, 30.0).unwrap(), from_csv);
        let from_csv = from_csv.corrections;
        assert_eq!(from_csv[&0], [(0..3, annotated.names[0].clone()), (3..9, annotated.names[1].clone())]);
        assert_eq!(from_csv[&1], [(0..7, annotated.names[2].clone())]);
        // As spreadsheets write it.
        let semicolons = "\u{feff}episode;start;end;name\r\n1;0;4.0;a, b\r\n1;4;7;c\r\n\r\n";
        assert_eq!(
            read(semicolons, &lengths, 30.0).unwrap().corrections[&1],
            [(0..4, "a, b".to_owned()), (4..7, "c".to_owned())]
        );
    }

    #[test]
    fn corrections_are_read_as_they_were_written() {
        let own = |name: &str| name.to_owned();
        let corrections = Corrections::from([(1, vec![(0..3, own("a, \"b\"")), (3..7, own("c"))])]);
        assert_eq!(read(&corrections_csv(&corrections), &[9, 7], 30.0).unwrap().corrections, corrections);
        // Spaces around a name are slips.
        let spaced = read("episode,start,end,name\n1,0,7, lift \n", &[9, 7], 30.0).unwrap().corrections;
        assert_eq!(spaced[&1], [(0..7, own("lift"))]);
    }

    #[test]
    fn seconds_that_are_not_those_of_the_frames_are_reported() {
        let text = "episode,start,end,start_s,end_s,name\n0,0,30,0,1.5,a\n0,30,45,1.016,1.5,b\n1,0,9,,x,c\n";
        let found = read(text, &[45, 9], 30.0).unwrap();
        let told = "line 2: `end_s` is 1.5, `end` is frame 30, which is at 1 s".to_owned();
        assert_eq!(found.other_seconds, [(0, told)]);
        assert_eq!(found.corrections[&0][0], (0..30, "a".to_owned()));
        let json = "[{\"episode\": 0, \"start\": 0, \"end\": 9, \"start_s\": 0.2, \"end_s\": 0.3, \"name\": \"a\"}]";
        let found = read(json, &[9], 30.0).unwrap();
        assert_eq!(found.other_seconds.len(), 1);
        assert!(found.other_seconds[0].1.starts_with("row 0: `start_s` is 0.2, `start` is frame 0"));
    }

    #[test]
    fn every_row_that_is_wrong_is_told() {
        let problems = |text: &str| match read(text, &[9, 7], 30.0) {
            Err(Error::Segments(problems)) => problems,
            other => panic!("{other:?}"),
        };
        let text = "episode,start,end,name\n0,0,4,a\n0,3,8,b\n1,1,7,c\n5,0,1,d\n0,8,12,e\n1,x,2,f\n1,0\n1,0,1, \n";
        assert_eq!(
            problems(text),
            [
                "line 7: `start` is `x`, not a number from 0",
                "line 8: 2 fields, the first line has 4",
                "line 5: there is no episode 5; the dataset has 2",
                "line 6: frames 8 to 12 are not a stretch of episode 0, which has 9 frames",
                "line 9: the name is empty",
                "line 3: starts at frame 3 of episode 0, before frame 4 where the one before it ends",
                "frames 8 to 9 of episode 0 have no subtask",
                "line 4: frames 0 to 1 of episode 1 have no subtask",
            ]
        );
        assert_eq!(problems("episode,start,name\n0,0,a\n"), ["its first line has no column `end`"]);
        assert_eq!(problems(""), ["it has no rows"]);
        let open = "episode,start,end,name\n0,0,4,a\n0,4,9,\"b\n1,0,7,c\n";
        assert_eq!(problems(open), ["line 3: a quote is opened that is not closed"]);
        assert!(problems("[{\"episode\": 0}]")[0].starts_with("row 0: missing field"));
        assert!(problems("{}")[0].starts_with("it is not a JSON list"));
    }
}
