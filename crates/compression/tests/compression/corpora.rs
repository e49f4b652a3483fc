//! Corpora that the tests share: fixtures, settings and random programs.

use std::path::PathBuf;

use compression::{Compression, Config, Corpus, CostKind, compress};
use proptest::prelude::*;

/// All costs.
pub(crate) const COSTS: [CostKind; 3] = [CostKind::Stitch, CostKind::Nats, CostKind::UniformNats];

/// A folder of this crate's fixtures.
pub(crate) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The programs of a JSON corpus.
pub(crate) fn read(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The programs of a fixture, by the file's stem.
pub(crate) fn fixture(name: &str) -> Vec<String> {
    read(&fixtures().join(format!("corpora/{name}.json")))
}

/// A corpus of s-expressions.
pub(crate) fn corpus<S: AsRef<str>>(programs: &[S]) -> Corpus {
    Corpus::from_sexprs(programs).unwrap()
}

/// Any gain counts.
pub(crate) fn config(cost: CostKind, max_arity: usize, rounds: usize) -> Config {
    Config { cost, max_arity, rounds, min_gain: 0.0, ..Config::default() }
}

/// One greedy round of Stitch's cost.
pub(crate) fn first_round(max_arity: usize) -> Config {
    Config { lookahead: 0.0, ..config(CostKind::Stitch, max_arity, 1) }
}

/// The compression, without progress.
pub(crate) fn compressed(corpus: &Corpus, config: &Config) -> Compression {
    compress(corpus, config, &|_| ()).unwrap()
}

/// Programs and library together.
pub(crate) fn total(compression: &Compression) -> f64 {
    compression.final_cost + compression.library_cost
}

/// What random programs are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The names of constants.
    pub(crate) symbols: &'static [&'static str],
    /// Whether there are λ and variables.
    pub(crate) lambdas: bool,
    /// Whether λ and variables carry tags.
    pub(crate) tags: bool,
    /// About how many leaves a program has.
    pub(crate) leaves: u32,
    /// The most programs.
    pub(crate) programs: usize,
}

/// Random programs as text, all closed.
pub(crate) fn programs(shape: Shape) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(tree(shape), 1..=shape.programs).prop_map(move |trees| {
        trees
            .iter()
            .map(|tree| {
                let mut text = String::new();
                tree.write(shape, 0, &mut text);
                text
            })
            .collect()
    })
}

#[derive(Clone, Debug)]
enum Tree {
    Symbol(usize),
    /// A variable, or a constant where there is no λ to bind it.
    Variable(usize, bool),
    Lambda(bool, Box<Tree>),
    Apply(Vec<Tree>),
}

fn tree(shape: Shape) -> BoxedStrategy<Tree> {
    let symbol = (0..shape.symbols.len()).prop_map(Tree::Symbol);
    let leaf = if shape.lambdas {
        prop_oneof![2 => symbol, 1 => (0..4usize, any::<bool>()).prop_map(|(index, tag)| Tree::Variable(index, tag))]
            .boxed()
    } else {
        symbol.boxed()
    };
    leaf.prop_recursive(5, shape.leaves, 3, move |inner| {
        let apply = prop::collection::vec(inner.clone(), 2..=3).prop_map(Tree::Apply);
        // The same subterm twice, so that parameters are used more than once.
        let twice = (inner.clone(), inner.clone()).prop_map(|(f, x)| Tree::Apply(vec![f, x.clone(), x]));
        if shape.lambdas {
            let lambda = (any::<bool>(), inner).prop_map(|(tag, body)| Tree::Lambda(tag, Box::new(body)));
            prop_oneof![4 => apply, 1 => twice, 2 => lambda].boxed()
        } else {
            prop_oneof![4 => apply, 1 => twice].boxed()
        }
    })
    .boxed()
}

impl Tree {
    fn write(&self, shape: Shape, depth: usize, out: &mut String) {
        let tag = |tag: bool| if tag && shape.tags { "_1" } else { "" };
        match self {
            Tree::Symbol(index) => out.push_str(shape.symbols[*index]),
            Tree::Variable(index, _) if depth == 0 => out.push_str(shape.symbols[index % shape.symbols.len()]),
            Tree::Variable(index, tagged) => out.push_str(&format!("${}{}", index % depth, tag(*tagged))),
            Tree::Lambda(tagged, body) => {
                out.push_str(&format!("(lam{} ", tag(*tagged)));
                body.write(shape, depth + 1, out);
                out.push(')');
            }
            Tree::Apply(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    out.push(if index == 0 { '(' } else { ' ' });
                    part.write(shape, depth, out);
                }
                out.push(')');
            }
        }
    }
}
