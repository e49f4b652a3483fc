//! Verbs as they are written: with a particle at once or after the object, with words that say how, and after words that
//! only lead to the verb (`go`, `use the cloth to`).

use super::cursor::Cursor;
use super::error::InstructionError;
use super::lexicon;
use super::tree::{Position, Verb};
use super::verbs::{MANNERS, Manner, PARTICLES, VERBS};
use super::vocabulary::ATTRIBUTES;

/// A verb as read. Its particle may still be to come: `turn … on`.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// The verb without its particle.
    pub(super) word: String,
    /// The action, if it is decided.
    pub(super) verb: Verb,
    /// What a place after the object means.
    pub(super) manner: Manner,
    /// The verb with its particle and with how it is done.
    pub(super) name: String,
    /// Whether how it is done was said, which no primitive has an argument for.
    pub(super) is_qualified: bool,
    /// `push left the block`, `pull the lever down`.
    pub(super) direction: Option<Position>,
    /// A particle that a target makes redundant: `put the cup down`, `put the cup down on the plate`.
    pub(super) particle: Option<String>,
    /// Whether a clause came before, so that the object may go unsaid.
    pub(super) follows: bool,
    /// How often.
    pub(super) times: u32,
}

impl Head {
    /// Adds a word that only the action's name can keep.
    pub(super) fn qualify(&mut self, words: &str) {
        self.name.push(' ');
        self.name.push_str(words);
        self.is_qualified = true;
    }

    /// Makes it an action of its own, named as written.
    pub(super) fn act(&mut self) {
        self.verb = Verb::Act;
        if let Some(particle) = self.particle.take() {
            self.name = format!("{} {particle}", self.name);
        }
    }

    /// A verb without anything around it.
    pub(super) fn plain(word: String, verb: Verb, manner: Manner) -> Head {
        let name = word.clone();
        Head {
            word,
            verb,
            manner,
            name,
            is_qualified: false,
            direction: None,
            particle: None,
            follows: false,
            times: 1,
        }
    }
}

/// Reads the verb that comes next.
pub(super) fn head(cursor: &mut Cursor, follows: bool) -> Result<Head, InstructionError> {
    if matches!(cursor.text(0), "go" | "try" | "come") {
        let skipped = 1 + usize::from(matches!(cursor.text(1), "to" | "and" | "ahead"));
        if cursor.starts_clause(skipped) {
            cursor.skip(skipped);
        }
    }
    if cursor.is_unknown_verb(0) {
        // A noun in the place of a verb is one: `pot the ball`.
        let is_noun = lexicon::entry(cursor.text(0)).is_known();
        if !is_noun {
            let error = cursor.no_verb();
            cursor.problem(error);
        }
        let manner = if is_noun { Manner::Moving } else { Manner::InPlace };
        let word = cursor.text(0).to_owned();
        cursor.advance();
        return Ok(Head { follows, ..Head::plain(word, Verb::Act, manner) });
    }
    if cursor.is_unknown_verb(1) && !cursor.has(0, |entry| entry.is_verb) && !lexicon::entry(cursor.text(0)).is_known()
    {
        // A compound of which no word is a verb of the lexicon: `fist bump the human`.
        let error = cursor.no_verb();
        cursor.problem(error);
        let word = format!("{} {}", cursor.text(0), cursor.text(1));
        cursor.skip(2);
        return Ok(Head { follows, ..Head::plain(word, Verb::Act, Manner::InPlace) });
    }
    let Some(entry) = cursor.entry(0).cloned().filter(|entry| entry.is_verb) else {
        return Err(cursor.no_verb());
    };
    let word = cursor.text(0).to_owned();
    let of_word = || VERBS.iter().filter(|(verb, _, _)| *verb == word);
    // The form with a particle wins where the particle is there.
    let here = |particle: &Option<&str>| particle.is_none_or(|particle| cursor.is(1, particle));
    let form = of_word().filter(|(_, particle, _)| here(particle)).max_by_key(|(_, particle, _)| particle.is_some());
    let particle = form.and_then(|(_, particle, _)| *particle);
    let verb = form.map_or(Verb::Act, |(_, _, verb)| *verb);
    let manner = entry.action.map_or(Manner::InPlace, |(_, manner)| manner);
    let mut head = Head { follows, ..Head::plain(word, verb, manner) };
    cursor.advance();
    if let Some(particle) = particle {
        head.name = format!("{} {particle}", head.word);
        cursor.advance();
        if head.verb == Verb::Release {
            cursor.eat("of");
        }
        return Ok(head);
    }
    leading_particle(cursor, &mut head);
    Ok(head)
}

/// `clean up the table`, `push down the button`, `rotate right the block`, `slide open the bag`, `look at the cup`.
fn leading_particle(cursor: &mut Cursor, head: &mut Head) {
    let word = cursor.text(0).to_owned();
    let object = |ahead: usize| cursor.starts_noun(ahead);
    let direction = cursor.entry(0).and_then(|entry| entry.position);
    if let Some(position) = direction.filter(|_| {
        cursor.has(1, |entry| entry.is_determiner || entry.number.is_some())
            || (cursor.ends(1) && head.verb == Verb::Act)
    }) {
        if cursor.ends(1) {
            head.qualify(&word);
        } else {
            head.direction = Some(position);
        }
        cursor.advance();
        return;
    }
    if head.verb != Verb::Act {
        let vertical = vertical(&word).filter(|_| is_pushed(head) && object(1));
        if vertical.is_some() {
            head.direction = vertical;
            cursor.advance();
        } else if let Some(result) = resultative(&word).filter(|_| is_pushed(head) && object(1)) {
            head.verb = result;
            cursor.advance();
        } else if matches!(word.as_str(), "away" | "out" | "off" | "over" | "together" | "apart" | "aside" | "up")
            && (object(1) && !cursor.is(1, "of"))
        {
            head.qualify(&word);
            head.act();
            cursor.advance();
        } else if word == "back" && cursor.has(1, |entry| entry.is_determiner) {
            cursor.advance();
        }
        return;
    }
    manners(cursor, head);
    let word = cursor.text(0).to_owned();
    // `pick up the cylinder and install on the board`: the object goes unsaid.
    let is_place = cursor.preposition().is_some_and(|(_, length)| cursor.starts_noun(length));
    let unsaid = head.follows && head.manner == Manner::Moving && is_place;
    let completes = (lexicon::lists(PARTICLES, &word) || word == "of") && !unsaid;
    if completes && (cursor.starts_noun(1) || cursor.ends(1)) {
        head.name = format!("{} {word}", head.name);
        cursor.advance();
    } else if let Some((_, length)) = cursor.preposition().filter(|_| is_place && !unsaid) {
        let words: Vec<&str> = (0..length).map(|ahead| cursor.text(ahead)).collect();
        head.name = format!("{} {}", head.name, words.join(" "));
        cursor.skip(length);
    }
}

/// Reads the particle after an object: it completes the verb, or it is a direction of pushing.
pub(super) fn trailing_particle(cursor: &mut Cursor, head: &mut Head) -> bool {
    let word = cursor.text(0).to_owned();
    let form = VERBS.iter().find(|(verb, particle, form)| {
        *verb == head.word && (head.verb == Verb::Act || head.verb == *form) && *particle == Some(word.as_str())
    });
    if let Some((_, _, form)) = form.filter(|_| !(head.verb == Verb::Act && head.is_qualified)) {
        let completes = !cursor.starts_noun(1) || cursor.preposition().is_none();
        if completes {
            head.verb = *form;
            head.particle = Some(word).filter(|_| form.takes_target());
            cursor.advance();
            return true;
        }
    }
    let pushes = is_pushed(head) && head.verb != Verb::Act;
    if let Some(position) = vertical(&word).filter(|_| pushes && head.direction.is_none()) {
        head.direction = Some(position);
        cursor.advance();
        return true;
    }
    if word == "up" && head.verb.holds() {
        cursor.advance();
        return true;
    }
    let inward = cursor.ends(1) && word == "in" && pushes;
    if inward || (head.verb.takes_target() && matches!(word.as_str(), "down" | "away" | "up")) {
        head.particle = Some(word);
        cursor.advance();
        return true;
    }
    let before_place = cursor.preposition_at(1).is_some() || !cursor.starts_noun(1);
    let is_out = matches!(word.as_str(), "out" | "off" | "away" | "apart" | "together");
    let kept = (head.verb == Verb::Act || (is_out && pushes))
        && lexicon::lists(PARTICLES, &word)
        && before_place
        && !cursor.is(1, "of")
        && !(word == "out" && head.verb == Verb::Act && cursor.is(1, "from"))
        && cursor.preposition().is_none_or(|(_, length)| length == 1);
    if kept || (is_out && pushes && cursor.is(1, "from")) {
        head.name = format!("{} {word}", head.name);
        head.act();
        cursor.advance();
        return true;
    }
    false
}

/// Reads words that say how: `upright`, `clockwise`, `90 degrees`, `by 5 cm`.
pub(super) fn manners(cursor: &mut Cursor, head: &mut Head) -> bool {
    let mut found = false;
    loop {
        let by = usize::from(cursor.is(0, "by") && !lexicon::lists(ATTRIBUTES, cursor.text(1)));
        let length = manner_length(cursor);
        if length == 0 {
            return found;
        }
        let words = (by..length).map(|ahead| cursor.text(ahead)).filter(|word| !matches!(*word, "a" | "the"));
        let words: Vec<&str> = words.collect();
        let words = words.join(" ");
        head.qualify(&words);
        cursor.skip(length);
        found = true;
    }
}

/// Reads the course of an action that leaves its object in place, `wipe the window from top to bottom`, and the order of
/// one on several things, `stack the cups from largest to smallest`.
pub(super) fn course(cursor: &mut Cursor, head: &mut Head) -> bool {
    if !cursor.is(0, "from") {
        return false;
    }
    let Some(from) = course_end(cursor, 1) else { return false };
    let to = 1 + from.length;
    let Some(other) = course_end(cursor, to + 1).filter(|_| cursor.is(to, "to")) else { return false };
    let length = to + 1 + other.length;
    let acts = head.verb == Verb::Act;
    // `sweep the dirt from the left to the right` moves it; `from left to right` is how.
    let is_course = from.is_place && other.is_place && acts && (head.manner == Manner::InPlace || !from.article);
    let is_order = !from.is_place && !other.is_place && (acts || head.verb == Verb::Stack || head.verb == Verb::Put);
    if cursor.is(length, "of") || !(is_course || is_order) {
        return false;
    }
    head.qualify(&format!("from {} to {}", from.words, other.words));
    cursor.skip(length);
    true
}

/// One end of a course.
struct CourseEnd {
    words: String,
    /// How many words of the text it has.
    length: usize,
    /// Whether it is a position, not a degree such as `largest`.
    is_place: bool,
    article: bool,
}

/// `the left side`, `top right`, with or without article and noun, or an adjective without a noun.
fn course_end(cursor: &Cursor, ahead: usize) -> Option<CourseEnd> {
    let article = usize::from(cursor.is(ahead, "the"));
    let at = ahead + article;
    let is_position = |at: usize| cursor.has(at, |entry| entry.position.is_some());
    let positions = (at..at + 2).take_while(|&at| is_position(at)).count();
    let is_degree = cursor.has(at, |entry| entry.is_adjective && entry.noun.is_none());
    let (count, is_place) = if positions > 0 { (positions, true) } else { (usize::from(is_degree), false) };
    let side = usize::from(is_place && matches!(cursor.text(at + count), "side" | "end" | "corner" | "edge"));
    let after = at + count + side;
    let goes_on = !is_place && cursor.has(after, |entry| entry.noun.is_some());
    (count > 0 && !goes_on).then(|| CourseEnd {
        words: (at..at + count).map(|at| cursor.text(at)).collect::<Vec<_>>().join(" "),
        length: after - ahead,
        is_place,
        article: article == 1,
    })
}

/// The number of words that say how, from the next one on.
pub(super) fn manner_length(cursor: &Cursor) -> usize {
    let by = usize::from(cursor.is(0, "by"));
    let is_number = cursor.has(by, |entry| entry.number.is_some()) || cursor.text(by).parse::<u32>().is_ok();
    let is_attribute = |ahead: usize| lexicon::lists(ATTRIBUTES, cursor.text(ahead));
    if by == 1 && is_attribute(1) {
        // `by color and size`
        return if cursor.is(2, "and") && is_attribute(3) { 4 } else { 2 };
    }
    let is_unit = matches!(
        cursor.text(by + 1),
        "degrees" | "degree" | "deg" | "cm" | "mm" | "inches" | "inch" | "centimeters" | "meters" | "m"
    );
    let listed = MANNERS.iter().find(|words| cursor.are(0, words)).map_or(0, |words| words.len());
    if listed == 0 && is_number && is_unit { by + 2 } else { listed }
}

/// The result in `push the drawer shut` and `slide open the bag`.
pub(super) fn resultative(word: &str) -> Option<Verb> {
    match word {
        "open" => Some(Verb::Open),
        "closed" | "shut" => Some(Verb::Close),
        _ => None,
    }
}

/// Whether the object of the verb moves along its surface or track.
pub(super) fn is_pushed(head: &Head) -> bool {
    matches!(head.verb, Verb::Push | Verb::Pull) || head.word == "move"
}

fn vertical(word: &str) -> Option<Position> {
    match word {
        "up" => Some(Position::Top),
        "down" => Some(Position::Bottom),
        _ => None,
    }
}
