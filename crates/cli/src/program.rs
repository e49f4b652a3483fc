//! `program check|eval|show|from-instruction`.

use language::{
    Event, Limits, ProgramError, Report, Scheme, TermId, TermStore, TypeId, evaluate_within, infer, instruction,
    pretty, print, read, show_trace, tokens_of,
};
use miette::Diagnostic;
use serde::Serialize;

use crate::args::{ProgramArgs, ProgramCommand};
use crate::failure::{Failure, note, say};
use crate::files;
use crate::vocabulary::Vocabulary;

/// The width of what `from-instruction` prints, in characters.
const WIDTH: usize = 80;

/// Runs one of the commands.
pub(crate) fn run(command: ProgramCommand) -> Result<(), Failure> {
    match command {
        ProgramCommand::Check(args) => check(&args),
        ProgramCommand::Eval { program, max_calls } => eval(&program, max_calls),
        ProgramCommand::Show { program, width } => show(&program, width),
        ProgramCommand::FromInstruction { words, json } => from_instruction(&words.join(" "), json),
    }
}

fn check(args: &ProgramArgs) -> Result<(), Failure> {
    let mut known = Vocabulary::general(args.library.as_deref())?;
    let (_, scheme) = understand(args, &mut known, None)?;
    let type_text = known.store.types().show_scheme(scheme);
    match args.json {
        true => print_json(&Checked { ok: true, type_text }),
        false => files::print(format!("{type_text}\n").as_bytes()),
    }
}

fn eval(args: &ProgramArgs, max_calls: usize) -> Result<(), Failure> {
    let mut known = Vocabulary::general(args.library.as_deref())?;
    let (term, _) = understand(args, &mut known, Some(TypeId::MOTION))?;
    let Vocabulary { store, signature } = &mut known;
    let limits = Limits { max_events: max_calls, ..Limits::default() };
    match evaluate_within(store, signature, term, limits) {
        Ok(events) if args.json => print_json(&Evaluated { ok: true, trace: steps(store, &events) }),
        Ok(events) => files::print(show_trace(store, &events).as_bytes()),
        Err(error) => Err(failure(args.json, [&error as &dyn Diagnostic], error.clone().into())),
    }
}

fn show(args: &ProgramArgs, width: usize) -> Result<(), Failure> {
    let mut known = Vocabulary::general(args.library.as_deref())?;
    let (term, scheme) = understand(args, &mut known, None)?;
    Shown::new(&known.store, term, scheme, width).print(args.json)
}

fn from_instruction(words: &str, as_json: bool) -> Result<(), Failure> {
    let text = files::argument(words)?;
    let Vocabulary { mut store, signature } = Vocabulary::general(None)?;
    let refused = |error: instruction::InstructionError| {
        let drawn = miette::Report::new(error.clone()).with_source_code(text.clone());
        if as_json {
            return failure(true, [&error as &dyn Diagnostic], drawn);
        }
        note(&drawn);
        say("no part of the instruction is understood; `run` keeps it as text, `instructed \"…\"`\n");
        Failure::Told
    };
    let found = instruction::understand(&text, &mut store, &signature).map_err(refused)?;
    let term = found.term;
    let scheme = infer(&mut store, &signature, term)
        .map_err(|errors| bad_program(as_json, Report::new(&print(&store, term), errors)))?;
    let corrected = found.corrected.iter().map(|(typed, meant)| format!("`{typed}` as `{meant}`")).collect();
    // The part that is understood is a program, as `run` would keep it; the rest is said, with its place.
    if !as_json {
        for problem in found.problems {
            note(&miette::Report::new(problem).with_source_code(text.clone()));
        }
    }
    Shown { corrected, missing: found.missing, ..Shown::new(&store, term, scheme, WIDTH) }.print(as_json)
}

/// The term and type of the program of the arguments.
fn understand(args: &ProgramArgs, known: &mut Vocabulary, goal: Option<TypeId>) -> Result<(TermId, Scheme), Failure> {
    let source = files::argument(&args.source)?;
    match read(&mut known.store, &known.signature, &source, goal) {
        Ok(typed) => Ok((typed.term, typed.scheme)),
        Err(report) => Err(bad_program(args.json, report)),
    }
}

fn bad_program(as_json: bool, report: Report) -> Failure {
    let errors: Vec<ProgramError> = report.errors.clone();
    failure(as_json, errors.iter().map(|error| error as &dyn Diagnostic), report.into())
}

/// The errors as JSON on stdout, or else drawn over their source on stderr.
fn failure<'e>(as_json: bool, errors: impl IntoIterator<Item = &'e dyn Diagnostic>, drawn: miette::Report) -> Failure {
    if !as_json {
        return Failure::Drawn(drawn);
    }
    let refused = Refused { ok: false, errors: errors.into_iter().map(Wrong::new).collect() };
    match print_json(&refused) {
        Ok(()) => Failure::Told,
        Err(failure) => failure,
    }
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    files::print(&files::json_bytes(value)?)
}

#[derive(Serialize)]
struct Checked {
    ok: bool,
    #[serde(rename = "type")]
    type_text: String,
}

#[derive(Serialize)]
struct Evaluated<'s> {
    ok: bool,
    trace: Vec<Step<'s>>,
}

/// An event of a trace, with its terms as text.
#[derive(Serialize)]
#[serde(untagged)]
enum Step<'s> {
    Call {
        call: &'s str,
        arguments: Vec<String>,
    },
    Branch {
        #[serde(rename = "if")]
        condition: String,
        then: Vec<Step<'s>>,
        #[serde(rename = "else")]
        otherwise: Vec<Step<'s>>,
    },
    Repeat {
        times: String,
        body: Vec<Step<'s>>,
    },
}

fn steps<'s>(store: &'s TermStore, events: &[Event]) -> Vec<Step<'s>> {
    let step = |event: &Event| match event {
        Event::Call { primitive, arguments, .. } => Step::Call {
            call: store.spelling(*primitive),
            arguments: arguments.iter().map(|&argument| print(store, argument)).collect(),
        },
        Event::Branch { condition, then, otherwise } => Step::Branch {
            condition: print(store, *condition),
            then: steps(store, then),
            otherwise: steps(store, otherwise),
        },
        Event::Repeat { count, body } => Step::Repeat { times: print(store, *count), body: steps(store, body) },
    };
    events.iter().map(step).collect()
}

#[derive(Serialize)]
struct Refused {
    ok: bool,
    errors: Vec<Wrong>,
}

/// An error with its places.
#[derive(Serialize)]
struct Wrong {
    message: String,
    help: Option<String>,
    labels: Vec<Label>,
}

/// A range of bytes of the source, and what is to be said about it.
#[derive(Serialize)]
struct Label {
    start: usize,
    end: usize,
    text: Option<String>,
}

impl Wrong {
    fn new(error: &dyn Diagnostic) -> Wrong {
        let labels = error.labels().into_iter().flatten();
        Wrong {
            message: error.to_string(),
            help: error.help().map(|help| help.to_string()),
            labels: labels
                .map(|label| Label {
                    start: label.offset(),
                    end: label.offset() + label.len(),
                    text: label.label().map(str::to_string),
                })
                .collect(),
        }
    }
}

/// A program and what is to be known about it.
#[derive(Serialize)]
struct Shown {
    ok: bool,
    program: String,
    #[serde(skip)]
    layout: String,
    #[serde(rename = "type")]
    type_text: String,
    /// The number of tokens that an emitter writes for it.
    tokens: usize,
    /// The number of nodes of its tree.
    size: u32,
    depth: u32,
    /// Misspelt words of an instruction with what they were read as.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    corrected: Vec<String>,
    /// The words of an instruction that are not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

impl Shown {
    fn new(store: &TermStore, term: TermId, scheme: Scheme, width: usize) -> Shown {
        Shown {
            ok: true,
            program: print(store, term),
            layout: pretty(store, term, width),
            type_text: store.types().show_scheme(scheme),
            tokens: tokens_of(store, term).len(),
            size: store.size(term),
            depth: store.depth(term),
            corrected: Vec::new(),
            missing: Vec::new(),
        }
    }

    fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            return print_json(self);
        }
        let Shown { layout, type_text, tokens, size, depth, corrected, missing, .. } = self;
        let mut text = format!("{layout}\n\ntype    {type_text}\ntokens  {tokens}\nsize    {size}, depth {depth}\n");
        if !corrected.is_empty() {
            text.push_str(&format!("read    {}\n", corrected.join(", ")));
        }
        if !missing.is_empty() {
            let words: Vec<String> = missing.iter().map(|words| format!("`{words}`")).collect();
            text.push_str(&format!("partly  not understood: {}\n", words.join(", ")));
        }
        files::print(text.as_bytes())
    }
}
