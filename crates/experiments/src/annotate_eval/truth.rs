//! What really happens in an episode: true phases, and the object of each.
//!
//! True segments are the runs of equal values in the column `phase`. The column says what the expert does, not to which
//! object. **The object of a segment is derived**: the instruction's program names the objects in order, one for each turn
//! (`put both A and B` has two turns), and a turn ends where a `release` ends. Phases that concern no object, such as
//! `retreat` or `drive`, have none, and neither have episodes whose instruction is not understood.
//!
//! An expert need not keep to the order of the instruction. LIBERO's `put both A and B in the basket` was recorded in either
//! order, and neither states nor actions name the object. Where the order is known from elsewhere, [`ObjectOrder`] overrides
//! that of the instruction; `results/annotate/object_order.py` finds it for our LIBERO sets from where objects were grasped.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use dataset::EpisodeId;
use language::{Event, Signature, TermStore, evaluate, instruction, print};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Phases without an object, but for the side that does them.
const WITHOUT_OBJECT: [&str; 11] = [
    "retreat",
    "drive",
    "turn",
    "turn_waist",
    "crouch",
    "stand_up",
    "wave_out",
    "wave_in",
    "back_off",
    "raise",
    "hold",
];

/// A phase that ends the turn of an object.
const RELEASE: &str = "release";

/// A true segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrueSegment {
    /// Its rows of the episode.
    pub rows: Range<usize>,
    /// The name of its phase, such as `left_reach`.
    pub phase: String,
    /// The object that it concerns, if there is one and it is known.
    pub object: Option<String>,
}

/// The objects of episodes in the order in which they were handled, by dataset and episode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectOrder(BTreeMap<String, BTreeMap<u32, Vec<String>>>);

impl ObjectOrder {
    /// Reads a file such as `{"libero_10": {"0": ["tomato sauce", "alphabet soup"]}}`.
    ///
    /// # Errors
    /// If it cannot be read or is something else.
    pub fn read(path: &Path) -> Result<ObjectOrder> {
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Format {
            path: path.to_owned(),
            reason: format!("expected objects by dataset and episode, such as {{\"libero_10\": {{\"0\": [\"tomato sauce\", \"alphabet soup\"]}}}}: {error}"),
        })
    }

    /// What is known of an episode.
    pub fn of(&self, dataset: &str, episode: EpisodeId) -> Option<&[String]> {
        self.0.get(dataset)?.get(&episode.0).map(Vec::as_slice)
    }
}

/// The objects of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Those that are handled, in order, one for each turn.
    pub handled: Vec<String>,
    /// All that are named, places included.
    pub named: Vec<String>,
}

/// Reads the objects of an instruction from its program; nothing where it is not understood.
pub fn objects_of(text: &str) -> Objects {
    let mut store = TermStore::new();
    let signature = Signature::general(&mut store);
    let mut found = Objects::default();
    let Ok(understood) = instruction::understand(text, &mut store, &signature) else { return found };
    let Ok(events) = evaluate(&mut store, &signature, understood.term) else { return found };
    for event in &events {
        let Event::Call { primitive, arguments, .. } = event else { continue };
        let primitive = store.spelling(*primitive);
        let printed: Vec<String> = arguments.iter().map(|one| print(&store, *one)).collect();
        // The head of each argument: `at "bowl" (next_to "plate")` is a bowl.
        let mut heads: Vec<String> = printed.iter().filter_map(|one| head(one)).collect();
        let is_verb = primitive.starts_with("act");
        if printed.first().is_some_and(|verb| verb == "\"pour\"") {
            poured(&printed, &mut heads);
        }
        let nouns = &heads[usize::from(is_verb).min(heads.len())..];
        // `with "left arm" (pick "cube")` is about the cube, `with "sponge" (act_on "wipe" "table")` about the sponge, and going
        // somewhere about no object.
        let object = match nouns.first() {
            _ if primitive == "reach" => None,
            Some(first) if primitive == "with" && is_limb(first) => nouns.get(1),
            first => first,
        };
        if let Some(object) = object {
            // What is picked up and then placed has one turn.
            let placed = primitive == "place" && found.handled.last() == Some(object);
            if !placed {
                found.handled.push(object.clone());
            }
        }
        for noun in nouns {
            if !found.named.contains(noun) {
                found.named.push(noun.clone());
            }
        }
    }
    found
}

/// The runs of equal phases, with their objects.
pub(super) fn true_segments(
    phases: &[i64],
    names: &[String],
    instruction: &str,
    order: Option<&[String]>,
) -> Vec<TrueSegment> {
    let handled = order.map_or_else(|| objects_of(instruction).handled, <[String]>::to_vec);
    let mut segments: Vec<TrueSegment> = Vec::new();
    let (mut start, mut turn) = (0, 0);
    for row in 1..=phases.len() {
        if row < phases.len() && phases[row] == phases[row - 1] {
            continue;
        }
        let value = phases[row - 1];
        let named = usize::try_from(value).ok().and_then(|at| names.get(at)).cloned();
        let phase = named.unwrap_or_else(|| value.to_string());
        let verb = sided(&phase).1;
        let object = (!WITHOUT_OBJECT.contains(&verb)).then(|| handled.get(turn.min(handled.len().saturating_sub(1))));
        turn += usize::from(verb == RELEASE);
        segments.push(TrueSegment { rows: start..row, object: object.flatten().cloned(), phase });
        start = row;
    }
    segments
}

/// The side that does a phase, and the phase without it: `left_reach` is a `reach` of the left arm.
pub fn sided(phase: &str) -> (Option<&str>, &str) {
    match phase.split_once('_') {
        Some((side @ ("left" | "right" | "both"), verb)) => (Some(side), verb),
        _ => (None, phase),
    }
}

/// Whether a name of an object means the true one: of all objects that the instruction names, it has most in common with it.
pub fn means(named: &str, truth: &str, instruction: &Objects) -> bool {
    let own = shared(named, truth);
    let others = instruction.named.iter().filter(|other| *other != truth);
    own > 0.0 && others.map(|other| shared(named, other)).all(|other| other < own)
}

/// The share of words that two texts have in common.
fn shared(one: &str, other: &str) -> f64 {
    let words = |text: &str| text.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    let both = one.iter().filter(|word| other.contains(word)).count();
    both as f64 / (one.len() + other.len() - both).max(1) as f64
}

fn is_limb(tool: &str) -> bool {
    tool.split_whitespace().any(|word| matches!(word, "arm" | "arms" | "hand" | "hands" | "gripper" | "grippers"))
}

/// What is poured is held in its container: of `at "water" (in "cup")` either name means what is handled.
fn poured(printed: &[String], heads: &mut [String]) {
    let texts: Vec<&str> = printed.get(1).map_or(Vec::new(), |one| one.split('"').skip(1).step_by(2).collect());
    if let ([what, container, ..], Some(head)) = (&texts[..], heads.get_mut(1)) {
        *head = format!("{what} in the {container}");
    }
}

/// The first text of a printed term; of one that does something, that to which it is done.
fn head(printed: &str) -> Option<String> {
    let verbs = usize::from(printed.starts_with("act"));
    printed.split('"').skip(1).step_by(2).nth(verbs).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handled(text: &str) -> Vec<String> {
        objects_of(text).handled
    }

    #[test]
    fn every_turn_of_an_instruction_has_its_object() {
        assert_eq!(handled("pick up the milk and place it in the basket"), ["milk"]);
        assert_eq!(handled("put both moka pots on the stove"), ["moka pot", "moka pot"]);
        assert_eq!(
            handled("put both the alphabet soup and the tomato sauce in the basket"),
            ["alphabet soup", "tomato sauce"]
        );
        assert_eq!(handled("turn on the stove and put the moka pot on it"), ["stove", "moka pot"]);
        assert_eq!(handled("open the middle drawer of the cabinet"), ["drawer"]);
        assert_eq!(handled("wipe the table with the sponge"), ["sponge"]);
        assert_eq!(handled("drive to the table and pick up the red cube"), ["red cube"]);
        assert_eq!(handled("turn around, drive to the desk and press the button"), ["button"]);
        let pour = objects_of("pour the water from the cup into the bowl");
        assert_eq!(pour.handled, ["water in the cup"]);
        assert!(["water", "cup"].iter().all(|name| means(name, &pour.handled[0], &pour)));
        assert!(!means("bowl", &pour.handled[0], &pour));
        assert_eq!(handled("pick up the red cube with the right arm and place it on the plate"), ["red cube"]);
        assert_eq!(handled(""), [""; 0]);
    }

    #[test]
    fn a_turn_ends_with_its_release_and_retreats_have_no_object() {
        let names: Vec<String> = ["reach", "grasp", "release", "retreat"].map(String::from).to_vec();
        let phases = [0, 0, 1, 2, 3, 0, 1, 1, 2];
        let text = "put both the alphabet soup and the tomato sauce in the basket";
        let objects = |order: Option<&[String]>| -> Vec<Option<String>> {
            true_segments(&phases, &names, text, order).into_iter().map(|one| one.object).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        let (soup, sauce) = (some("alphabet soup"), some("tomato sauce"));
        let wanted =
            [soup.clone(), soup.clone(), soup.clone(), None, sauce.clone(), sauce.clone(), sauce.clone()].to_vec();
        assert_eq!(objects(None), wanted);
        let order = ["tomato sauce".to_owned(), "alphabet soup".to_owned()];
        assert_eq!(objects(Some(&order))[0], sauce);
        let rows: Vec<Range<usize>> =
            true_segments(&phases, &names, text, None).into_iter().map(|one| one.rows).collect();
        assert_eq!(rows, [0..2, 2..3, 3..4, 4..5, 5..6, 6..8, 8..9]);
    }

    #[test]
    fn an_object_is_told_from_others_by_its_words() {
        let mugs = Objects {
            named: ["white mug", "yellow and white mug", "plate"].map(String::from).to_vec(),
            ..Objects::default()
        };
        assert!(means("white mug", "white mug", &mugs));
        assert!(!means("white mug", "yellow and white mug", &mugs));
        assert!(means("yellow and white mug", "yellow and white mug", &mugs));
        assert!(!means("plate", "white mug", &mugs) && !means("", "white mug", &mugs));
        let drawer = Objects { named: ["drawer", "cabinet"].map(String::from).to_vec(), ..Objects::default() };
        assert!(means("middle drawer", "drawer", &drawer));
    }
}
