//! Which entries of recorded runs the posterior would prune by their share, at the default probability and at stricter ones.
//!
//! ```text
//! cargo run --release -p compression --example pruned -- results/loop/*.json
//! ```
//! Reads the library and the rewritten programs of the last iteration in the `summary.json` of each run. The types of skills
//! are not recorded, but follow from how they are called: with a pose, or with nothing.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;

use compression::{Library, Programs, PruneConfig, prune};
use language::{Signature, TermStore};
use serde_json::Value;

/// The probabilities of paying below which entries go; the first is the default.
const PROBABILITIES: [f64; 4] = [0.75, 0.9, 0.95, 0.975];

fn main() -> Result<(), Box<dyn Error>> {
    let (mut entries, mut removed) = (0, [0; PROBABILITIES.len()]);
    for path in std::env::args().skip(1) {
        let summary: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        let programs = recorded(&summary).map_err(|error| format!("{path}: {error}"))?;
        entries += programs.library().len();
        for (min_probability, sum) in PROBABILITIES.iter().zip(&mut removed) {
            let config = PruneConfig { min_probability: *min_probability, by_length: false, ..PruneConfig::default() };
            let pruned = prune(&programs, config)?.removed;
            *sum += pruned.len();
            for entry in pruned {
                let high = 100.0 * entry.share.high;
                println!(
                    "{path} at {min_probability}: {}, {} uses, at most {high:.1} % of calls",
                    entry.name, entry.uses
                );
            }
        }
    }
    for (min_probability, removed) in PROBABILITIES.iter().zip(removed) {
        println!("at {min_probability}: {removed} of {entries} entries");
    }
    Ok(())
}

/// The programs of the last iteration with its library.
fn recorded(summary: &Value) -> Result<Programs, Box<dyn Error>> {
    let last = summary["refactor"].as_array().and_then(|all| all.last()).ok_or("no iteration")?;
    let programs: Vec<String> = serde_json::from_value(last["programs"].clone())?;
    let bodies = last["library"]["abstractions"].as_array().into_iter().flatten();
    let bodies: Vec<&str> = bodies.filter_map(|entry| entry["body"].as_str()).collect();
    let mut store = TermStore::new();
    let mut base = Signature::standard(&mut store);
    base.declare(&mut store, "instructed", "Lang -> Motion", "do what the sentence says")?;
    base.declare(&mut store, "by", "Twist -> Pose", "the previous target, moved and turned by this")?;
    base.declare(&mut store, "by_joints", "Joints -> Joints", "the previous target, changed by this")?;
    for (skill, takes_a_pose) in skills(programs.iter().map(String::as_str).chain(bodies)) {
        let of_type = if takes_a_pose { "Pose -> Motion" } else { "Motion" };
        base.declare(&mut store, &skill, of_type, "a skill of the run")?;
    }
    let library = Library::from_json(&last["library"].to_string(), &store, &base)?;
    Ok(Programs::read(&store, &base, &library, &programs)?)
}

/// The skills that texts call, and whether anything stands behind their name as an argument.
fn skills<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for text in texts {
        for (at, _) in text.match_indices("skill_") {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let takes_one = rest[end..].strip_prefix(' ').is_some_and(|next| !next.starts_with([',', ']', ')']));
            *found.entry(rest[..end].to_owned()).or_insert(false) |= takes_one;
        }
    }
    found
}
