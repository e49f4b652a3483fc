//! One run of the wake/sleep loop as a page that a person can look at.
//!
//! [`Report`] is plain data: numbers, names, programs as text, pictures as bytes. The driver fills it and keeps it as
//! `report.json`; [`render`] makes one HTML file of it that needs no network, no font and no script of others. Both are
//! functions of their argument alone, so the same run gives the same bytes.
//!
//! ```
//! use report::{Report, Run, SCHEMA, render};
//!
//! let run = Run {
//!     title: "nothing learned yet".into(),
//!     datasets: vec![],
//!     presets: vec!["tiny".into()],
//!     seed: 7,
//!     version: "0.1.0".into(),
//!     revision: None,
//!     device: "cpu".into(),
//!     started: None,
//!     seconds: 12.5,
//!     command: "refactor-vla run --dataset a<b --out run".into(),
//!     config_hash: "00ff".into(),
//!     config: None,
//! };
//! let report = Report {
//!     schema: SCHEMA, run, tasks: vec![], phases: vec![], iterations: vec![], training: vec![], skills: vec![],
//!     map: None, episodes: vec![], library: vec![], candidates: vec![], metrics: vec![], notes: vec![],
//! };
//! let page = render(&report);
//! assert!(page.contains("a&lt;b"));
//! assert_eq!(Report::from_json(&report.to_json()?)?, report);
//! # Ok::<(), report::ReportError>(())
//! ```

mod check;
mod figure;
mod json_number;
mod learning;
mod motion;
mod page;
mod programs;
mod report;

pub use figure::Figure;
pub use learning::{Iteration, LossTerm, Series, TrainingPhase};
pub use motion::{ClusterMap, Episode, Example, Picture, Skill, Span};
pub use page::render;
pub use programs::{Candidate, Entry, Expansion, Gate, Hole, Posterior, Verdict};
pub use report::{Better, DatasetInfo, Estimate, Metric, Report, ReportError, Run, SCHEMA};
