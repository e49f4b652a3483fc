//! The primitives and the library: every constant with its type scheme.
//!
//! [`DEFAULT_PRIM_TYPES`] is the whole default vocabulary: the 14 LIBERO verbs, the relations and references that their
//! arguments are made of, the conditions of `branch`, the injections of motor types into motions, and the 17 symbols of
//! the motor alphabet. `seq`, `repeat`, `branch`, λ and application are syntax, not constants.

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::diagnostic::InferError;
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
    (
        "stack",
        "Lang -> Lang -> Motion",
        "stack the first object on the second",
    ),
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
    (
        "part",
        "Lang -> Lang -> Lang",
        "the first object as a part of the second",
    ),
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
    (
        "grip",
        "GripperPhase -> Motion",
        "do this with the gripper for one step",
    ),
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
    (
        "hold_closed",
        "GripperPhase",
        "keep the gripper closed and the hand still",
    ),
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
            message: report
                .errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        })?;
        let name = store.name(name)?;
        self.insert(
            store,
            Entry {
                name,
                scheme,
                kind: Kind::Primitive { doc: doc.to_string() },
            },
        )
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
        self.entries
            .iter()
            .filter_map(|entry| entry.body().map(|body| (entry, body)))
    }

    fn insert(&mut self, store: &TermStore, entry: Entry) -> Result<Name, SignatureError> {
        let name = entry.name;
        if self.positions.contains_key(&name) {
            return Err(SignatureError::Taken {
                name: store.spelling(name).to_string(),
            });
        }
        self.positions.insert(name, self.entries.len());
        self.entries.push(entry);
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_declared_with_its_type() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        assert_eq!(signature.entries().len(), DEFAULT_PRIM_TYPES.len());
        for (name, type_text, _) in DEFAULT_PRIM_TYPES {
            let entry = signature.find(&store, name).unwrap();
            assert_eq!(store.types().show_scheme(entry.scheme), type_text, "{name}");
        }
    }
}
