//! Libraries as text that a person reads and may write.
//!
//! ```text
//! library 1, next fn_1
//! fn_0/2 : Lang -> Pose -> Motion [t 1, 12 uses, 34.5 nats] = \x0. \x1. seq[pick x0, place x0 x1]
//! ```
//!
//! One definition a line, the body last, so that nothing in it needs a mark of its own. All but name and body may be
//! missing: `grab = \x. seq[reach (on x), grasp x]` is a definition. Names and bodies come back exactly; gains and shares
//! are rounded for the reader, JSON has them in full. A body that JSON has over several lines is written on one, without the
//! comments in it.

use std::borrow::Cow;
use std::fmt::Write as _;

use language::{Signature, TermStore};

use crate::library::{Library, LibraryEntry, LibraryError, LibraryProblem, Share, VERSION, plain_lambdas};

impl Library {
    /// The library as text, one definition a line.
    pub fn to_text(&self) -> String {
        let mut text = format!("library {VERSION}, next fn_{}\n", self.next());
        for entry in self.entries() {
            let LibraryEntry { name, arity, principal_type, iteration, gain, uses, posterior, body } = entry;
            // Writing into a string cannot fail.
            let _ = write!(text, "{name}/{arity} : {principal_type} [t {iteration}, {uses} uses, {gain:.1} nats");
            if let Some(Share { mean, low, high }) = posterior {
                let _ = write!(text, ", share {mean:.4} in {low:.4} to {high:.4}");
            }
            let _ = writeln!(text, "] = {}", one_line(body));
        }
        text
    }

    /// Reads text, and checks that it defines what it says over the primitives of `base`. All problems are reported.
    pub fn from_text(text: &str, store: &TermStore, base: &Signature) -> Result<Self, LibraryError> {
        let mut problems = Vec::new();
        let (mut version, mut next) = (VERSION, 0);
        let mut drafts = Vec::new();
        for (line, content) in text.lines().enumerate().map(|(index, content)| (index + 1, content.trim())) {
            let read = match content.strip_prefix("library ") {
                _ if content.is_empty() || content.starts_with('#') => Ok(()),
                Some(rest) if !content.contains('=') => header(rest).map(|found| (version, next) = found),
                _ => definition(content).map(|draft| drafts.push(draft)),
            };
            problems.extend(read.err().map(|reason| LibraryProblem::Line { line, reason }));
        }
        let entries = complete(drafts, &mut store.clone(), base);
        let library = Self::unchecked(version, next, entries);
        match library.check(store, base) {
            Ok(()) if problems.is_empty() => Ok(library),
            Ok(()) => Err(LibraryError { problems }),
            Err(mut error) => {
                error.problems.splice(0..0, problems);
                Err(error)
            }
        }
    }
}

/// A body on one line. Comments end with their line, so they have to go; texts do not go over lines.
fn one_line(body: &str) -> Cow<'_, str> {
    if !body.contains('\n') {
        return Cow::Borrowed(body);
    }
    let lines: Vec<&str> =
        body.lines().map(|line| line[..comment(line)].trim()).filter(|line| !line.is_empty()).collect();
    Cow::Owned(lines.join(" "))
}

/// Where the comment of a line begins, or its end.
fn comment(line: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, symbol) in line.char_indices() {
        match symbol {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '#' if !quoted => return at,
            _ => {}
        }
    }
    line.len()
}

/// An entry as it was written, where arity and type may be missing; a type that is missing is empty.
struct Draft {
    entry: LibraryEntry,
    has_arity: bool,
}

fn header(rest: &str) -> Result<(u32, u64), String> {
    let wrong = || format!("found `library {rest}`, expected `library {VERSION}, next fn_0`");
    let (version, next) = rest.split_once(", next fn_").ok_or_else(wrong)?;
    Ok((version.trim().parse().map_err(|_| wrong())?, next.trim().parse().map_err(|_| wrong())?))
}

fn definition(content: &str) -> Result<Draft, String> {
    // Neither names nor types nor figures have an equals sign.
    let (head, body) = content.split_once('=').ok_or("expected a definition `name = body`")?;
    let (head, figures) = match head.split_once('[') {
        Some((head, figures)) => (head, figures.trim().strip_suffix(']').ok_or("expected `]` before `=`")?),
        None => (head, ""),
    };
    let (name, principal_type) = match head.split_once(':') {
        Some((_, principal_type)) if principal_type.trim().is_empty() => return Err("expected a type after `:`".into()),
        Some((name, principal_type)) => (name, Some(principal_type.trim().to_owned())),
        None => (head, None),
    };
    let (name, arity) = match name.split_once('/') {
        Some((name, arity)) => {
            let arity = arity.trim();
            (name, Some(arity.parse().map_err(|_| format!("found arity `{arity}`, expected a number"))?))
        }
        None => (name, None),
    };
    let mut draft = Draft {
        has_arity: arity.is_some(),
        entry: LibraryEntry {
            name: name.trim().to_owned(),
            arity: arity.unwrap_or(0),
            principal_type: principal_type.unwrap_or_default(),
            iteration: 0,
            gain: 0.0,
            uses: 0,
            posterior: None,
            body: body.trim().to_owned(),
        },
    };
    for part in figures.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        figure(part, &mut draft.entry).ok_or_else(|| {
            format!(
                "found `{part}`, expected figures such as `t 1`, `12 uses`, `34.5 nats`, `share 0.1 in 0.05 to 0.2`"
            )
        })?;
    }
    Ok(draft)
}

fn figure(part: &str, entry: &mut LibraryEntry) -> Option<()> {
    let words: Vec<&str> = part.split_whitespace().collect();
    match words[..] {
        ["t", iteration] => entry.iteration = iteration.parse().ok()?,
        [uses, "uses"] => entry.uses = uses.parse().ok()?,
        [gain, "nats"] => entry.gain = gain.parse().ok()?,
        ["share", mean, "in", low, "to", high] => {
            let share = Share { mean: mean.parse().ok()?, low: low.parse().ok()?, high: high.parse().ok()? };
            entry.posterior = Some(share);
        }
        _ => return None,
    }
    Some(())
}

/// Fills in what was not written: the arity is the number of plain λ, the type that of the body.
fn complete(drafts: Vec<Draft>, store: &mut TermStore, base: &Signature) -> Vec<LibraryEntry> {
    let mut signature = base.clone();
    let mut named = base.clone();
    for draft in &drafts {
        // A name that cannot be declared is reported by the check that follows.
        let _ = named.declare(store, &draft.entry.name, "forall a. a", "");
    }
    let mut entries: Vec<LibraryEntry> = Vec::with_capacity(drafts.len());
    let mut open: Vec<usize> = Vec::new();
    for (index, mut draft) in drafts.into_iter().enumerate() {
        if !draft.has_arity
            && let Ok(parsed) = language::parse(store, &named, &draft.entry.body)
        {
            draft.entry.arity = plain_lambdas(store, parsed.term);
        }
        open.push(index);
        entries.push(draft.entry);
    }
    // Entries may call later ones: define those that can be defined, until none is left that can.
    loop {
        let before = open.len();
        open.retain(|&index| {
            let entry = &mut entries[index];
            let Ok(parsed) = language::parse(store, &signature, &entry.body) else { return true };
            let Ok(name) = signature.define(store, &entry.name, parsed.term) else { return true };
            if entry.principal_type.is_empty() {
                let scheme = signature.get(name).map(|defined| defined.scheme);
                entry.principal_type = scheme.map(|scheme| store.types().show_scheme(scheme)).unwrap_or_default();
            }
            false
        });
        if open.is_empty() || open.len() == before {
            return entries;
        }
    }
}
