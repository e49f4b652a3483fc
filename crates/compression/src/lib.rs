//! Library learning: anti-unification, description length and rewriting.
mod bound;
pub mod cost;
mod factored;
mod lookahead;
mod objective;
mod pattern;
mod rewrite;
pub mod search;
pub mod sexpr;
mod space;
pub mod term;

/// trial
pub fn trial(programs: &[String], arity: usize, rounds: usize, lookahead: f64, threads: usize) {
    let t = std::time::Instant::now();
    let mut terms = term::Terms::new();
    let roots: Vec<_> = programs.iter().map(|p| sexpr::parse(&mut terms, p, sexpr::Params::Refuse).unwrap()).collect();
    let original = roots.clone();
    let o = terms.clone();
    let r = lookahead::run(factored::Factored::unfactored(terms, roots), &objective::Objective::Stitch, &lookahead::RoundLimits { rounds, lookahead, min_gain: 0, search: search::SearchLimits { max_arity: arity, keep: 0, floor: 0, max_steps: u64::MAX, deadline: None, parallel: threads > 1, rules: search::Rules::default() } }, &|_, _, _| {});
    let c = objective::Objective::Stitch.cost(&r.best.end);
    assert_eq!(c.total(), r.best.cost);
    println!("final {} library {} sum {} expansions {} {:?}", c.programs, c.library, c.total(), r.steps, t.elapsed());
    let (t2, p2) = r.best.end.inlined();
    for (a, b) in original.iter().zip(&p2) { assert_eq!(sexpr::print(&o, *a), sexpr::print(&t2, *b)); }
    if std::env::var("LOG").is_ok() { for e in &r.best.end.entries { println!("   {} {}", r.best.end.terms.name(e.symbol), sexpr::print(&r.best.end.terms, e.body)); } }
}
