//! Libraries of skills: how to look for one, and a compressed corpus as part of the language.

use compression::{Abstraction, Compression, Config, RefactorConfig};
use language::{Signature, TermId, TermStore, parse};

use crate::error::SkillError;

/// How a corpus of skill programs is compressed: the defaults of the compressor (nats, a gain of more than 4), but for
///
/// * five parameters: two skills have a twist and a count each, and what comes after them is the fifth. With fewer, most
///   entries abbreviate one skill; with six, searches no longer end within their steps and gain little;
/// * a limit of steps, which the longest programs reach at five parameters.
pub fn motor_config() -> Config {
    Config { max_arity: 5, max_steps: Some(100_000), ..Config::default() }
}

/// How a step of refactoring searches a corpus of skill programs: the paper's settings, for abstractions that have the
/// shape of skills ([`compression::Shape::Skill`]), with
///
/// * seven parameters: three skills have a twist and a count each, and what comes after them is the seventh. On the four
///   LIBERO sets (ten classes by k-means; chosen on the sets it is measured on) eight entries then leave 20 980 nats of
///   24 843, against 21 349 with five, 21 254 with six, 21 108 with eight and 21 016 with nine: from seven on it is mostly
///   chance which of the candidates comes first. No search is cut short with any of them;
/// * a limit of steps all the same, more than four times what one of those sets took in all rounds together.
pub fn motor_refactor_config() -> RefactorConfig {
    RefactorConfig { max_arity: 7, max_steps: Some(200_000), ..RefactorConfig::default() }
}

/// Defines the library of a compression and reads the rewritten programs.
///
/// Entries may call later ones, never in a circle, so each is defined once those it calls are there.
///
/// # Errors
/// On a body or a program that cannot be read: then the compression is of another signature.
pub fn adopt(
    store: &mut TermStore,
    signature: &mut Signature,
    compression: &Compression,
) -> Result<Vec<TermId>, SkillError> {
    let mut pending: Vec<&Abstraction> = compression.abstractions.iter().collect();
    while !pending.is_empty() {
        let before = pending.len();
        let mut refused = None;
        let mut later = Vec::new();
        for abstraction in pending {
            let body = parse(store, signature, &abstraction.body).map_err(|report| report.to_string());
            match body.and_then(|parsed| {
                signature.define(store, &abstraction.name, parsed.term).map_err(|error| error.to_string())
            }) {
                Ok(_) => {}
                Err(reason) => {
                    refused = Some(SkillError::NotRead { what: format!("`{}`", abstraction.name), reason });
                    later.push(abstraction);
                }
            }
        }
        if let Some(refused) = refused.filter(|_| later.len() == before) {
            return Err(refused);
        }
        pending = later;
    }
    let mut programs = Vec::with_capacity(compression.rewritten.len());
    for (at, text) in compression.rewritten.iter().enumerate() {
        let parsed = parse(store, signature, text)
            .map_err(|report| SkillError::NotRead { what: format!("program {at}"), reason: report.to_string() })?;
        programs.push(parsed.term);
    }
    Ok(programs)
}

/// How many motions the body of an entry names: skills, other primitives and entries whose result is a Motion. Two or
/// more tell an abstraction over several motions from an abbreviation of one.
pub fn motions_in(store: &TermStore, signature: &Signature, name: &str) -> usize {
    let Some(body) = signature.find(store, name).and_then(language::Entry::body) else { return 0 };
    compression::motions_named(store, signature, body)
}
