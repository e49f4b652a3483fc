//! Which tasks are evaluated: what was asked for, against what the simulator has and what the run was trained on.

use std::fs;

use experiments::closed_loop::tasks::{Chosen, Suites};
use experiments::policy::{POLICY, PolicyRecord};

use super::{ClosedLoopArgs, InitChoice, Prompt};
use crate::failure::{Failure, Problem};
use crate::files::shown;

/// The evaluations with their names, which are also the names of their files.
pub(super) fn chosen(options: &ClosedLoopArgs, suites: &Suites) -> Result<Vec<(String, Chosen)>, Failure> {
    if options.prompt == Prompt::Program && options.compose.is_none() {
        return Err(Problem::new("`--prompt program` needs `--compose`")
            .hint("the kit's `compositions.json` has programs; single tasks have instructions only")
            .into());
    }
    if let Some(address) = &options.server {
        address_parts(address).ok_or_else(|| bad_address(address))?;
    }
    let mut ending = options.arm.as_ref().map_or_else(String::new, |arm| format!(".{arm}"));
    if options.init == InitChoice::Random {
        ending += ".random";
    }
    if options.prompt != Prompt::Instruction {
        ending += &format!(".{}", options.prompt.name());
    }
    if options.server.is_some() {
        ending += ".server";
    }
    let mut found: Vec<(String, Chosen)> = match &options.compose {
        Some(file) => {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            vec![(name, suites.compositions(file)?)]
        }
        None => by_suite(options, suites)?.into_iter().map(|one| (one.suite.clone(), one)).collect(),
    };
    if !options.tasks.is_empty() {
        let [(_, only)] = &mut found[..] else {
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Problem::new("`--tasks` needs one suite")
                .fact("found", names.join(", "))
                .hint(format!("choose it with `--suite {}`", names.first().unwrap_or(&"SUITE")))
                .into());
        };
        if options.compose.is_none() {
            // Also tasks that the run was not trained on, since they were asked for by number.
            *only = suites.whole(&only.suite).unwrap_or_else(|| only.clone());
        }
        let unknown: Vec<String> =
            options.tasks.iter().filter(|task| !only.tasks.contains_key(task)).map(usize::to_string).collect();
        if !unknown.is_empty() {
            return Err(Problem::new(format!("there is no task {}", unknown.join(", ")))
                .fact("expected", format!("numbers from 0 to {}", only.tasks.len().saturating_sub(1)))
                .into());
        }
        only.tasks.retain(|task, _| options.tasks.contains(task));
    }
    Ok(found.into_iter().map(|(name, one)| (format!("{name}{ending}"), one)).collect())
}

/// Host and port of another server.
pub(super) fn address(text: &str) -> Result<(String, u16), Failure> {
    address_parts(text).ok_or_else(|| bad_address(text).into())
}

fn address_parts(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim_start_matches("ws://").trim_end_matches('/').rsplit_once(':')?;
    (!host.is_empty()).then(|| Some((host.to_owned(), port.parse().ok()?)))?
}

fn bad_address(text: &str) -> Problem {
    Problem::new(format!("`{text}` is not an address")).fact("expected", "HOST:PORT, such as `127.0.0.1:8000`")
}

fn by_suite(options: &ClosedLoopArgs, suites: &Suites) -> Result<Vec<Chosen>, Failure> {
    let path = options.run.join(POLICY);
    let record: Option<PolicyRecord> = match path.is_file() {
        false => None,
        true => {
            let bytes =
                fs::read(&path).map_err(|error| Problem::new(format!("cannot read {}: {error}", shown(&path))))?;
            let wrong = |error: serde_json::Error| {
                Problem::new(format!("{} is not the record of a policy", shown(&path))).fact("reason", error)
            };
            Some(serde_json::from_slice(&bytes).map_err(wrong)?)
        }
    };
    let trained = record.as_ref().map(|record| suites.trained(record)).unwrap_or_default();
    let names: Vec<&str> = suites.names().collect();
    if options.suite.is_empty() {
        if !trained.is_empty() {
            return Ok(trained);
        }
        let problem = Problem::new(match &record {
            None => format!("{} does not say what it was trained on", shown(&options.run)),
            Some(_) => "the run was trained on none of the simulator's tasks".to_owned(),
        });
        let problem = match record.as_ref().and_then(|record| record.tasks.first()) {
            Some(task) => problem.fact("found", format!("instructions such as `{}`", task.instruction)),
            None => problem,
        };
        return Err(problem.hint(format!("choose a suite with `--suite`: {}", names.join(", "))).into());
    }
    let unknown: Vec<&str> = options.suite.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
    if !unknown.is_empty() {
        return Err(Problem::new(format!("the simulator has no suite `{}`", unknown.join("`, `")))
            .fact("expected", names.join(", "))
            .into());
    }
    let of = |name: &String| {
        let known = trained.iter().find(|one| one.suite == *name).cloned();
        known.or_else(|| suites.whole(name))
    };
    Ok(options.suite.iter().filter_map(of).collect())
}
