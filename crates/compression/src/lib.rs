//! Library learning: anti-unification, description length and rewriting.
pub mod cost;
mod pattern;
mod rewrite;
pub mod search;
pub mod sexpr;
mod space;
pub mod term;

use term::{TermId, Terms};

#[derive(Clone)]
struct State { terms: Terms, programs: Vec<TermId>, library: Vec<(TermId, usize)>, total: u64, log: Vec<String> }

fn step(state: &State, arity: usize, keep: usize, libroots: bool) -> (Vec<State>, u64) {
    let mut terms = state.terms.clone();
    let mut roots: Vec<(TermId, u64)> = state.programs.iter().map(|&p| (p, 1)).collect();
    if libroots { roots.extend(state.library.iter().map(|&(b, _)| (b, 1))); }
    let space = space::Space::new(&mut terms, &roots, &cost::Weights::stitch());
    let found = search::search(&space, &search::SearchConfig { max_arity: arity, max_expansions: u64::MAX, keep, policy: 5, rules: search::Rules { argument_capture: true, redundant_argument: true, single_place: true, exhausted_arity: true, overlap: false } });
    let mut out = Vec::new();
    for p in &found.best {
        let body = p.body_term(&space, &mut terms);
        let mut into = Terms::with_names_of(&terms);
        let name = into.symbol(&format!("fn_{}", state.library.len()));
        let all: Vec<TermId> = roots.iter().map(|r| r.0).chain(if libroots {vec![]} else {state.library.iter().map(|l| l.0).collect()}).collect();
        let all = if libroots { all } else { all[..state.programs.len()].to_vec() };
        let new = rewrite::rewrite(&space, &terms, p, name, &all, &mut into);
        let programs = new[..state.programs.len()].to_vec();
        let mut library: Vec<(TermId, usize)> = if libroots { state.library.iter().zip(&new[state.programs.len()..]).map(|(l, &b)| (b, l.1)).collect() } else {
            state.library.iter().map(|l| { let t = sexpr::print(&state.terms, l.0); (sexpr::parse(&mut into, &t, sexpr::Params::Allow).unwrap(), l.1) }).collect() };
        let text = sexpr::print(&terms, body);
        library.push((sexpr::parse(&mut into, &text, sexpr::Params::Allow).unwrap(), p.arity));
        let costs = cost::Weights::stitch().costs(&into);
        let total = programs.iter().chain(library.iter().map(|l| &l.0)).map(|p| costs[p.0 as usize]).sum();
        let mut log = state.log.clone(); log.push(format!("{total} {text}"));
        out.push(State { terms: into, programs, library, total, log });
    }
    (out, found.expansions)
}

/// trial
pub fn trial(programs: &[String], arity: usize, rounds: usize, width: usize, keep: usize, libroots: bool) {
    let t = std::time::Instant::now();
    let mut terms = Terms::new();
    let roots: Vec<_> = programs.iter().map(|p| sexpr::parse(&mut terms, p, sexpr::Params::Refuse).unwrap()).collect();
    let mut beam = vec![State { terms, programs: roots, library: vec![], total: u64::MAX, log: vec![] }];
    let mut expansions = 0;
    for _ in 0..rounds {
        let mut next = Vec::new();
        for s in &beam { let (c, e) = step(s, arity, keep, libroots); expansions += e; next.extend(c); }
        next.sort_by_key(|s| s.total);
        next.dedup_by_key(|s| s.total);
        next.truncate(width);
        if next.is_empty() { break; }
        beam = next;
    }
    let s = &beam[0];
    let costs = cost::Weights::stitch().costs(&s.terms);
    let fin: u64 = s.programs.iter().map(|p| costs[p.0 as usize]).sum();
    println!("final {fin} library {} sum {} expansions {expansions} {:?}", s.total - fin, s.total, t.elapsed());
    if std::env::var("LOG").is_ok() { for l in &s.log { println!("   {l}"); } }
}
