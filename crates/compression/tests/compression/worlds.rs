//! Typed corpora for the tests of libraries.

use compression::{Library, Programs, read_programs};
use language::{Event, Generator, Signature, TermId, TermStore, TypeId, evaluate, parse};

/// A store with the primitives that programs are written with.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: TermStore,
    pub(crate) base: Signature,
}

impl World {
    /// The default primitives.
    pub(crate) fn new() -> World {
        let mut store = TermStore::new();
        let base = Signature::standard(&mut store);
        World { store, base }
    }

    /// The default primitives, and constants that take functions.
    pub(crate) fn higher_order() -> World {
        let mut world = World::new();
        for (name, source) in [("twice", r"\f. \x. f (f x)"), ("const", r"\x. \y. x")] {
            let term = parse(&mut world.store, &world.base, source).unwrap().term;
            world.base.define(&mut world.store, name, term).unwrap();
        }
        world
    }

    pub(crate) fn read(&mut self, texts: &[String]) -> Vec<TermId> {
        self.read_with(&Library::new(), texts)
    }

    pub(crate) fn read_with(&mut self, library: &Library, texts: &[String]) -> Vec<TermId> {
        let signature = library.define(&mut self.store, &self.base).unwrap();
        read_programs(&mut self.store, &signature, texts).unwrap()
    }

    /// Programs of this store, bound with a library.
    pub(crate) fn bind(&self, library: &Library, programs: &[TermId]) -> Programs {
        Programs::new(&self.store, &self.base, library, programs.to_vec()).unwrap()
    }

    /// What bound programs do.
    pub(crate) fn traces_of(programs: &Programs) -> Vec<Vec<Event>> {
        let mut store = programs.store().clone();
        programs.terms().iter().map(|&term| evaluate(&mut store, programs.signature(), term).unwrap()).collect()
    }

    /// What bound programs do, as text that does not depend on the store.
    pub(crate) fn shown(programs: &Programs) -> Vec<String> {
        let mut store = programs.store().clone();
        let show = |&term: &TermId| {
            let trace = evaluate(&mut store, programs.signature(), term).unwrap();
            language::show_trace(&store, &trace)
        };
        programs.terms().iter().map(show).collect()
    }

    /// What programs do.
    pub(crate) fn traces(&mut self, library: &Library, programs: &[TermId]) -> Vec<Vec<Event>> {
        let signature = library.define(&mut self.store, &self.base).unwrap();
        programs.iter().map(|&program| evaluate(&mut self.store, &signature, program).unwrap()).collect()
    }

    /// Random programs that make no more calls than can be counted, each several times with some of it changed.
    pub(crate) fn random(&mut self, seed: u64, count: usize) -> Vec<TermId> {
        let mut generator = Generator::new(seed);
        let objects: Vec<TermId> = ["a", "b", "c"].iter().map(|name| self.store.text(name)).collect();
        let mut parts = vec![self.store.call("lift", &objects[..1]).unwrap()];
        for _ in 0..count {
            let part = generator.term(&mut self.store, &self.base, TypeId::MOTION, 24).unwrap().unwrap();
            if evaluate(&mut self.store, &self.base, part).is_ok_and(|trace| trace.len() < 200) {
                parts.push(part);
            }
        }
        let mut programs = Vec::new();
        for index in 0..3 * count {
            let part = parts[generator.below(parts.len())];
            let object = objects[generator.below(objects.len())];
            let (open, close) =
                (self.store.call("open", &[object]).unwrap(), self.store.call("close", &[object]).unwrap());
            let other = parts[index % parts.len()];
            let items = match generator.below(3) {
                0 => vec![open, part, close],
                1 => vec![open, part, close, other],
                _ => vec![other, open, close],
            };
            programs.push(self.store.seq(&items).unwrap());
        }
        programs
    }
}

/// Programs in the manner of LIBERO, of which much can be abstracted.
pub(crate) fn kitchen() -> Vec<String> {
    let mut texts = Vec::new();
    for (a, b) in [("soup", "basket"), ("milk", "basket"), ("butter", "tray"), ("mug", "plate"), ("bowl", "stove")] {
        texts.push(format!(r#"seq[pick "{a}", place "{a}" (in "{b}")]"#));
        texts.push(format!(r#"seq[open "drawer", pick "{a}", place "{a}" (in "{b}"), close "drawer"]"#));
        texts.push(format!(r#"seq[open "drawer", push "{a}" (next_to "{b}"), close "drawer"]"#));
        texts.push(format!(r#"repeat(seq[pick "{a}", place "{a}" (in "{b}"), lift "{b}"], 2)"#));
    }
    texts
}
