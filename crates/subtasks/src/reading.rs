//! From the text of an instruction to its steps, with the words spelt as the text spells them.

use language::instruction::{Plan, partial};

use crate::steps::{Step, steps};

/// A compound with more hyphens than this is a sentence that a file name spells with hyphens.
const LONGEST: usize = 4;

/// The steps that an instruction asks for; none if it is not understood, or is about something that it does not name
/// (`put it there`). With `drives` for a robot on a base; what is done to an open number of objects is repeated for `rounds` of
/// them, see [`steps`].
pub fn expected(instruction: &str, drives: bool, rounds: usize) -> Vec<Step> {
    let Some(plan) = understood(instruction).filter(|plan| !has_pronoun(plan)) else { return Vec::new() };
    let mut steps = steps(&plan, drives, rounds);
    let spellings = spellings(instruction);
    let behind = sides_behind(instruction);
    for step in &mut steps {
        for (split, written) in &spellings {
            step.name = respelt(&step.name, split, written);
            step.object = step.object.as_ref().map(|object| respelt(object, split, written));
        }
        for (noun, side) in &behind {
            step.name = at_side(&step.name, noun, side);
        }
    }
    steps
}

/// The plan of an instruction, or of as many of its clauses as are understood.
fn understood(mut instruction: &str) -> Option<Plan> {
    loop {
        if let Ok(found) = partial(instruction) {
            return Some(found.plan);
        }
        instruction = &instruction[..instruction.rfind([',', ';', '.'])?];
    }
}

/// What ends like a plural and is one thing.
const ONE_THING: &str = "scissors pliers tongs tweezers forceps clippers glasses sunglasses goggles binoculars headphones earphones \
     earbuds pants trousers jeans shorts clothes chopsticks lens";

/// The singular of a noun phrase that is a plural; `None` of any other. The language says which words are plurals.
pub(crate) fn singular(noun: &str) -> Option<String> {
    let last = noun.rsplit(' ').next().filter(|last| last.ends_with('s') && last.chars().all(char::is_alphabetic))?;
    if ONE_THING.split_ascii_whitespace().any(|one| one == last) {
        return None;
    }
    match partial(&format!("pick up all the {last}")).ok()?.plan {
        Plan::Call("pick", arguments) => match &arguments[..] {
            [Plan::Call("all", of)] => match &of[..] {
                [Plan::Text(one)] if one != last => Some(format!("{}{one}", &noun[..noun.len() - last.len()])),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether a plan has a pronoun that nothing explains.
fn has_pronoun(plan: &Plan) -> bool {
    match plan {
        Plan::Text(name) => matches!(name.as_str(), "it" | "them" | "they" | "both"),
        Plan::Call(_, plans) | Plan::Seq(plans) => plans.iter().any(has_pronoun),
        Plan::Repeat(body, _) => has_pronoun(body),
    }
}

/// The nouns of a text that are followed by `at the front` or `at the back`, with that side.
fn sides_behind(instruction: &str) -> Vec<(String, &'static str)> {
    let text = instruction.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let found = words.windows(4).filter(|four| four[1] == "at" && four[2] == "the");
    let side = |word: &str| ["front", "back"].into_iter().find(|side| *side == word);
    found.filter_map(|four| Some((four[0].to_owned(), side(four[3])?))).collect()
}

/// A text with a side behind its noun: `the black bowl at the back` and not `the back black bowl`.
fn at_side(text: &str, noun: &str, side: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let ends = |at: usize| words.get(at + 1..)?.iter().take(4).position(|word| *word == noun).map(|more| at + 1 + more);
    let place = (0..words.len()).find_map(|at| Some((at, ends(at).filter(|_| words[at] == side)?)));
    let Some((at, end)) = place else { return text.to_owned() };
    let behind = ["at", "the", side];
    [&words[..at], &words[at + 1..=end], &behind, &words[end + 1..]].concat().join(" ")
}

/// The compounds of a text such as `t-shirt` and `#2`, each with its words apart, as plans have them.
fn spellings(instruction: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for word in instruction.split(|c: char| c.is_whitespace() || c == '_') {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '#').to_lowercase();
        let word = word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(&word).to_owned();
        let parts: Vec<&str> = word.split('-').collect();
        let number = word.strip_prefix('#').filter(|number| number.chars().all(char::is_alphanumeric));
        if let Some(number) = number.filter(|number| !number.is_empty()) {
            found.push((format!("# {number}"), word));
        } else if (2..=LONGEST).contains(&parts.len())
            && parts.iter().all(|part| !part.is_empty() && part.chars().all(char::is_alphanumeric))
        {
            found.push((parts.join(" "), word));
        }
    }
    found
}

/// A text with some words written as one, wherever they stand as whole words; of a plural also its singular.
fn respelt(text: &str, split: &str, written: &str) -> String {
    let singular = split.strip_suffix('s').zip(written.strip_suffix('s'));
    for (split, written) in [Some((split, written)), singular].into_iter().flatten() {
        let padded = format!(" {text} ");
        let found = padded.replace(&format!(" {split} "), &format!(" {written} "));
        if found != padded {
            return found.trim().to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(instruction: &str) -> Vec<String> {
        expected(instruction, false, 1).into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn compounds_are_spelt_as_the_instruction_spells_them() {
        let put = names("Put box #2 on the T-shirt.");
        assert_eq!(put[0], "reach for box #2");
        assert_eq!(put[4], "place box #2 on the t-shirt");
        assert!(names("fold the t-shirts").contains(&"fold the t-shirts".to_owned()));
        assert_eq!(names("pick up the red-and-white mug")[1], "grasp the red-and-white mug");
        let object = expected("pick up the star-shaped block", false, 1)[0].object.clone();
        assert_eq!(object.as_deref(), Some("star-shaped block"));
        // Words are not joined where the text has them apart, and a file name is no compound.
        assert_eq!(names("pick up the red block")[1], "grasp the red block");
        assert_eq!(respelt("at shirts", "t shirt", "t-shirt"), "at shirts");
        assert_eq!(spellings("pick-up-the-red-block"), []);
    }

    #[test]
    fn sides_stand_where_the_instruction_has_them() {
        let put = names("put the black bowl at the back on the plate");
        assert_eq!(put[..2], ["reach for the black bowl at the back", "grasp the black bowl at the back"]);
        let book = names("pick up the book and place it in the back compartment of the caddy");
        assert!(book.iter().any(|name| name.ends_with("in the back compartment")), "{book:?}");
    }

    #[test]
    fn plurals_have_a_singular_unless_they_are_one_thing() {
        let found = |noun: &str| singular(noun).unwrap_or_default();
        assert_eq!((found("cubes"), found("moka pots")), ("cube".to_owned(), "moka pot".to_owned()));
        for one in ["scissors", "glasses", "cube", "bus", "glass", "lens", "", "box #2s"] {
            assert_eq!(singular(one), None, "{one}");
        }
    }

    #[test]
    fn what_is_not_named_has_no_steps() {
        for instruction in ["put it there", "open it", "pick them up", "it", ""] {
            assert_eq!(names(instruction), [""; 0], "{instruction}");
        }
        assert_eq!(names("pick up the cup and put it on the plate").len(), 7);
    }
}
