//! The primitives and the library: every constant with its type scheme.
//!
//! [`DEFAULT_PRIM_TYPES`] is the whole default vocabulary: the 14 LIBERO verbs, the relations and references that their
//! arguments are made of, the conditions of `branch`, the injections of motor types into motions, and the 17 symbols of
//! the motor alphabet. [`GENERAL_PRIM_TYPES`] adds what instructions beyond LIBERO need. `seq`, `repeat`, `branch`, λ and
//! application are syntax, not constants. (The paper names the table and the number of verbs, not its rows; the rows are
//! ours.)

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::diagnostic::InferError;
use crate::infer::infer;
use crate::parse::parse_scheme;
use crate::term::{Name, TermError, TermId, TermStore};
use crate::types::Scheme;

/// The default primitives: name, type, meaning.
pub const DEFAULT_PRIM_TYPES: [(&str, &str, &str); 61] = [
    // The 14 verbs of LIBERO.
    ("pick", "Lang -> Motion", "pick the object up"),
    ("place", "Lang -> Pose -> Motion", "place the held object there"),
    ("put", "Lang -> Pose -> Motion", "pick the object up and place it there"),
    ("push", "Lang -> Pose -> Motion", "push the object there"),
    ("pull", "Lang -> Pose -> Motion", "pull the object there"),
    ("stack", "Lang -> Lang -> Motion", "stack the first object on the second"),
    ("open", "Lang -> Motion", "open the container"),
    ("close", "Lang -> Motion", "close the container"),
    ("turn_on", "Lang -> Motion", "turn the appliance on"),
    ("turn_off", "Lang -> Motion", "turn the appliance off"),
    ("reach", "Pose -> Motion", "bring the hand there"),
    ("grasp", "Lang -> Motion", "close the gripper around the object"),
    ("lift", "Lang -> Motion", "lift the grasped object"),
    ("release", "Lang -> Motion", "let the object go"),
    // Places in relation to objects.
    ("on", "Lang -> Pose", "on the object"),
    ("in", "Lang -> Pose", "in the object"),
    ("under", "Lang -> Pose", "under the object"),
    ("on_top_of", "Lang -> Pose", "on the top side of the object"),
    ("next_to", "Lang -> Pose", "next to the object"),
    ("left_of", "Lang -> Pose", "to the left of the object"),
    ("right_of", "Lang -> Pose", "to the right of the object"),
    ("front_of", "Lang -> Pose", "in front of the object"),
    ("back_of", "Lang -> Pose", "behind the object"),
    ("between", "Lang -> Lang -> Pose", "between the two objects"),
    // Places in the frame of whatever is spoken of.
    ("left", "Pose", "the left"),
    ("right", "Pose", "the right"),
    ("middle", "Pose", "the middle"),
    ("front", "Pose", "the front"),
    ("back", "Pose", "the back"),
    ("top", "Pose", "the top"),
    ("bottom", "Pose", "the bottom"),
    ("center", "Pose", "the centre"),
    // References to objects.
    ("at", "Lang -> Pose -> Lang", "the object of that name that is there"),
    ("part", "Lang -> Lang -> Lang", "the first object as a part of the second"),
    ("both", "Lang -> Lang -> Lang", "both objects"),
    // Conditions.
    ("holding", "Lang -> Bool", "the gripper holds the object"),
    ("is_open", "Lang -> Bool", "the container is open"),
    ("is_on", "Lang -> Bool", "the appliance is on"),
    ("is_at", "Lang -> Pose -> Bool", "the object is there"),
    ("not", "Bool -> Bool", "the condition does not hold"),
    // Motor types as motions.
    ("move", "Twist -> Motion", "move with this twist for one step"),
    ("press", "Wrench -> Motion", "press with this wrench for one step"),
    ("grip", "GripperPhase -> Motion", "do this with the gripper for one step"),
    ("goto", "Pose -> Motion", "bring the hand to this pose"),
    // The motor alphabet: 12 signed axes, standing still, and four gripper phases.
    ("x_pos", "Twist", "one step along +x"),
    ("x_neg", "Twist", "one step along -x"),
    ("y_pos", "Twist", "one step along +y"),
    ("y_neg", "Twist", "one step along -y"),
    ("z_pos", "Twist", "one step along +z"),
    ("z_neg", "Twist", "one step along -z"),
    ("roll_pos", "Twist", "one step of rotation about +x"),
    ("roll_neg", "Twist", "one step of rotation about -x"),
    ("pitch_pos", "Twist", "one step of rotation about +y"),
    ("pitch_neg", "Twist", "one step of rotation about -y"),
    ("yaw_pos", "Twist", "one step of rotation about +z"),
    ("yaw_neg", "Twist", "one step of rotation about -z"),
    ("still", "Twist", "one step without motion"),
    ("grip_open", "GripperPhase", "open the gripper"),
    ("grip_close", "GripperPhase", "close the gripper"),
    ("hold_open", "GripperPhase", "keep the gripper open and the hand still"),
    ("hold_closed", "GripperPhase", "keep the gripper closed and the hand still"),
];

/// Primitives for what instructions say beyond LIBERO: name, type, meaning. A verb without a primitive of its own is
/// text (`act_on "fold" "towel"`), so that six primitives cover the lexicon and the vocabulary of a learned emitter stays
/// small.
pub const GENERAL_PRIM_TYPES: [(&str, &str, &str); 6] = [
    ("act", "Lang -> Motion", "do what the verb says"),
    ("act_on", "Lang -> Lang -> Motion", "do what the verb says to the object"),
    ("act_to", "Lang -> Lang -> Pose -> Motion", "do what the verb says to the object, which ends up there"),
    ("with", "Lang -> Motion -> Motion", "the motion, done with that tool or hand"),
    ("all", "Lang -> Lang", "every object of that description"),
    ("rel", "Lang -> Lang -> Pose", "the place in that relation to the object"),
];

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Given, with its meaning in words.
    Primitive {
        /// The meaning.
        doc: String,
    },
    /// Defined by a term over earlier constants.
    Library {
        /// The closed definition.
        body: TermId,
    },
}

/// A constant of the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// Its generalised type.
    pub scheme: Scheme,
    /// Primitive or defined.
    pub kind: Kind,
}

impl Entry {
    /// The definition of a library entry; nothing for a primitive.
    pub fn body(&self) -> Option<TermId> {
        match self.kind {
            Kind::Library { body } => Some(body),
            Kind::Primitive { .. } => None,
        }
    }
}

/// A constant that may not be declared, defined or removed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SignatureError {
    /// The name is taken.
    #[error("`{name}` is already in the signature; choose another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// The definition calls itself.
    #[error("the definition of `{name}` calls `{name}`; a library entry may call earlier entries only")]
    Recursive {
        /// The name.
        name: String,
    },
    /// The definition has no type.
    #[error("the definition of `{name}` is ill-typed: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    IllTyped {
        /// The name.
        name: String,
        /// Why.
        errors: Vec<InferError>,
    },
    /// The type text does not parse.
    #[error("the type of `{name}` does not parse: {message}")]
    BadType {
        /// The name.
        name: String,
        /// Why.
        message: String,
    },
    /// The name is none.
    #[error(transparent)]
    BadName(#[from] TermError),
    /// There is no such entry.
    #[error("`{name}` is no library entry")]
    NotDefined {
        /// The name.
        name: String,
    },
    /// Another definition uses the entry.
    #[error("`{name}` is used by `{user}`; inline it there first")]
    InUse {
        /// The entry.
        name: String,
        /// The entry that calls it.
        user: String,
    },
}

/// The constants and their types. A signature belongs to the store that it was made with.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    entries: Vec<Entry>,
    positions: FxHashMap<Name, usize>,
}

impl Signature {
    /// A signature without constants.
    pub fn empty() -> Signature {
        Signature::default()
    }

    /// The default primitives and no library.
    pub fn standard(store: &mut TermStore) -> Signature {
        let mut signature = Signature::empty();
        for (name, type_text, doc) in DEFAULT_PRIM_TYPES {
            // Every row of the table is known to be good (tested below), so nothing is lost here.
            let _ = signature.declare(store, name, type_text, doc);
        }
        signature
    }

    /// The default primitives, those of general instructions ([`GENERAL_PRIM_TYPES`]) and no library.
    pub fn general(store: &mut TermStore) -> Signature {
        let mut signature = Signature::standard(store);
        signature.declare_general(store);
        signature
    }

    /// Adds the primitives of general instructions that are not there yet.
    pub fn declare_general(&mut self, store: &mut TermStore) {
        for (name, type_text, doc) in GENERAL_PRIM_TYPES {
            // Every row of the table is known to be good (tested below), so only a name that is taken is refused.
            let _ = self.declare(store, name, type_text, doc);
        }
    }

    /// Adds a primitive.
    pub fn declare(
        &mut self,
        store: &mut TermStore,
        name: &str,
        type_text: &str,
        doc: &str,
    ) -> Result<Name, SignatureError> {
        let scheme = parse_scheme(store.types_mut(), type_text).map_err(|report| SignatureError::BadType {
            name: name.to_string(),
            message: report.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        })?;
        let name = store.name(name)?;
        self.insert(store, Entry { name, scheme, kind: Kind::Primitive { doc: doc.to_string() } })
    }

    /// Adds a library entry: infers and generalises the type of its definition.
    ///
    /// The definition is closed and calls primitives and earlier entries only, so the library has no cycles.
    pub fn define(&mut self, store: &mut TermStore, name: &str, body: TermId) -> Result<Name, SignatureError> {
        let spelled = store.name(name)?;
        if store.constants(body).contains(&spelled) && self.get(spelled).is_none() {
            return Err(SignatureError::Recursive { name: name.to_string() });
        }
        let scheme =
            infer(store, self, body).map_err(|errors| SignatureError::IllTyped { name: name.to_string(), errors })?;
        self.insert(store, Entry { name: spelled, scheme, kind: Kind::Library { body } })
    }

    /// Removes a library entry that no other entry calls. Programs that call it must be inlined before.
    pub fn remove(&mut self, store: &TermStore, name: Name) -> Result<Entry, SignatureError> {
        let spelling = |name| store.spelling(name).to_string();
        let Some((&at, _)) = self.positions.get(&name).zip(self.get(name).and_then(Entry::body)) else {
            return Err(SignatureError::NotDefined { name: spelling(name) });
        };
        if let Some((user, _)) = self.library().find(|&(_, body)| store.constants(body).contains(&name)) {
            return Err(SignatureError::InUse { name: spelling(name), user: spelling(user.name) });
        }
        let removed = self.entries.remove(at);
        self.positions = self.entries.iter().enumerate().map(|(at, entry)| (entry.name, at)).collect();
        Ok(removed)
    }

    /// The term with the library entries that `chosen` picks replaced by their definitions, also inside definitions.
    pub fn inline(
        &self,
        store: &mut TermStore,
        term: TermId,
        chosen: impl Fn(Name) -> bool,
    ) -> Result<TermId, TermError> {
        let mut needed = store.constants(term);
        let mut at = 0;
        while let Some(&name) = needed.get(at) {
            if let Some(body) = self.get(name).and_then(Entry::body).filter(|_| chosen(name)) {
                let inner = store.constants(body);
                needed.extend(inner.into_iter().filter(|inner| !needed.contains(inner)).collect::<Vec<_>>());
            }
            at += 1;
        }
        // Entries call earlier ones only, so in order of definition every replacement is ready when it is needed.
        let mut replaced: FxHashMap<TermId, TermId> = FxHashMap::default();
        for (entry, body) in self.library() {
            if needed.contains(&entry.name) && chosen(entry.name) {
                let body = replace_parts(store, body, &mut replaced)?;
                replaced.insert(store.constant(entry.name), body);
            }
        }
        replace_parts(store, term, &mut replaced)
    }

    /// The entry of a name.
    pub fn get(&self, name: Name) -> Option<&Entry> {
        self.positions.get(&name).map(|&at| &self.entries[at])
    }

    /// The entry of that spelling.
    pub fn find(&self, store: &TermStore, word: &str) -> Option<&Entry> {
        self.get(store.find_name(word)?)
    }

    /// All constants in order of definition.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The library entries with their definitions, in order of definition.
    pub fn library(&self) -> impl Iterator<Item = (&Entry, TermId)> {
        self.entries.iter().filter_map(|entry| entry.body().map(|body| (entry, body)))
    }

    fn insert(&mut self, store: &TermStore, entry: Entry) -> Result<Name, SignatureError> {
        let name = entry.name;
        if self.positions.contains_key(&name) {
            return Err(SignatureError::Taken { name: store.spelling(name).to_string() });
        }
        self.positions.insert(name, self.entries.len());
        self.entries.push(entry);
        Ok(name)
    }
}

/// Rebuilds a term with closed parts replaced, and adds what it rebuilt to the replacements. An entry's constant occurs
/// in later definitions only, so nothing that was rebuilt before its replacement was known mentions it.
fn replace_parts(
    store: &mut TermStore,
    term: TermId,
    replaced: &mut FxHashMap<TermId, TermId>,
) -> Result<TermId, TermError> {
    if let Some(&known) = replaced.get(&term) {
        return Ok(known);
    }
    let children = store.get(term).children();
    if children.is_empty() {
        return Ok(term);
    }
    let mut parts = Vec::with_capacity(children.len());
    for (child, _) in children {
        parts.push(replace_parts(store, child, replaced)?);
    }
    let rebuilt = store.with_children(term, &parts)?;
    replaced.insert(term, rebuilt);
    Ok(rebuilt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::print::print;

    fn library(definitions: &[(&str, &str)]) -> (TermStore, Signature) {
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        for (name, source) in definitions {
            let body = parse(&mut store, &signature, source).unwrap().term;
            signature.define(&mut store, name, body).unwrap();
        }
        (store, signature)
    }

    #[test]
    fn definitions_are_generalised() {
        let (store, signature) = library(&[
            ("f0", r"\x. \p. seq[pick x, place x p]"),
            ("twice", r"\f. \x. f (f x)"),
            ("f1", r#"twice (\m. seq[m, m]) (f0 "bowl" (twice (\p. p) left))"#),
        ]);
        let shown: Vec<String> =
            signature.library().map(|(entry, _)| store.types().show_scheme(entry.scheme)).collect();
        assert_eq!(shown, ["Lang -> Pose -> Motion", "forall a. (a -> a) -> a -> a", "Motion"]);
    }

    #[test]
    fn bad_definitions_are_refused() {
        let (mut store, mut signature) = library(&[]);
        let body = store.call("f0", &[]).unwrap();
        assert!(matches!(signature.define(&mut store, "f0", body), Err(SignatureError::Recursive { .. })));
        assert!(matches!(signature.define(&mut store, "g", body), Err(SignatureError::IllTyped { .. })));
        let body = store.seq(&[]).unwrap();
        assert!(matches!(signature.define(&mut store, "pick", body), Err(SignatureError::Taken { .. })));
        assert!(matches!(signature.define(&mut store, "seq", body), Err(SignatureError::BadName(_))));
    }

    #[test]
    fn inlining_removes_the_chosen_calls_and_frees_the_entry() {
        let (mut store, mut signature) =
            library(&[("f0", r"\x. pick x"), ("f1", r#"seq[f0 "a", f0 "b"]"#), ("f2", "repeat(f1, 2)")]);
        let [f0, f1, f2] = ["f0", "f1", "f2"].map(|name| store.find_name(name).unwrap());
        let call = store.constant(f2);
        let all = signature.inline(&mut store, call, |_| true).unwrap();
        assert_eq!(print(&store, all), r#"repeat(seq[(\x. pick x) "a", (\x. pick x) "b"], 2)"#);
        let some = signature.inline(&mut store, call, |name| name != f0).unwrap();
        assert_eq!(print(&store, some), r#"repeat(seq[f0 "a", f0 "b"], 2)"#);
        assert!(matches!(signature.remove(&store, f1), Err(SignatureError::InUse { .. })));
        assert!(signature.remove(&store, f2).is_ok() && signature.remove(&store, f1).is_ok());
        assert!(signature.get(f0).is_some() && signature.get(f1).is_none());
    }

    #[test]
    fn every_row_of_the_table_is_declared_with_its_type() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        assert_eq!(signature.entries().len(), DEFAULT_PRIM_TYPES.len());
        for (name, type_text, _) in DEFAULT_PRIM_TYPES {
            let entry = signature.find(&store, name).unwrap();
            assert_eq!(store.types().show_scheme(entry.scheme), type_text, "{name}");
        }
        let general = Signature::general(&mut store);
        assert_eq!(general.entries().len(), DEFAULT_PRIM_TYPES.len() + GENERAL_PRIM_TYPES.len());
        for (name, type_text, _) in GENERAL_PRIM_TYPES {
            let entry = general.find(&store, name).unwrap();
            assert_eq!(store.types().show_scheme(entry.scheme), type_text, "{name}");
        }
    }
}
