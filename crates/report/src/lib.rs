//! A self-contained HTML report of one run of the wake/sleep loop.
//!
//! [`Report`] is plain data: numbers, names, programs as text, pictures as bytes. The driver fills it and stores it as
//! `report.json`; [`render`] turns it into one HTML file that loads nothing else. Both are functions of their argument alone,
//! so the same run gives the same bytes.
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
//!     device: "cpu".into(),
//!     labels: "no labels were used".into(),
//!     seconds: 12.5,
//!     command: "refactor-vla run --dataset a<b --out run".into(),
//!     config_hash: "00ff".into(),
//!     config: None,
//! };
//! let report = Report {
//!     schema: SCHEMA, run, tasks: vec![], phases: vec![], iterations: vec![], training: vec![], skills: vec![],
//!     map: None, kernel: None, episodes: vec![], library: vec![], candidates: vec![], arms: vec![], metrics: vec![],
//!     notes: vec![],
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
mod metrics;
mod motion;
mod page;
mod programs;
mod report;
mod rollouts;
mod strips;

pub use figure::Figure;
pub use learning::{Iteration, IterationPolicy, LossTerm, Series, TrainingPhase};
pub use metrics::{Arm, Better, Estimate, Metric, SKILL_GROUP};
pub use motion::{ClusterMap, Episode, Example, KernelAgreement, Picture, Skill, Span};
pub use page::{render, render_rollouts, render_strips};
pub use programs::{Candidate, Entry, Expansion, Hole, Posterior, Verdict};
pub use report::{DatasetInfo, Report, ReportError, Run, SCHEMA};
pub use rollouts::{Moment, Rollout, Rollouts};
pub use strips::{Part, Strip, Strips};
