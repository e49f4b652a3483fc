//! Syntax tree to program: every reference resolved, every coordination spelt out.
//!
//! Departures from the letter of the text, all for a robot with one hand:
//! * `both pots` repeats the motion (`repeat(…, 2)`), several objects become several motions in their order;
//! * `pick up both bowls and place them in the tray` picks and places one, then the other;
//! * `them` after `stack` is one thing to hold (`both a b`);
//! * `put` of a thing already in the hand is `place`, for `put` includes the picking;
//! * an action without a primitive of its own keeps its name: `act_on "fold" "towel"`, `act_to "pour" "water" (in "cup")`.

use super::discourse::{Discourse, Entity, Event, Role, pair};
use super::error::InstructionError;
use super::lexicon::Kind;
use super::plan::Plan;
use super::tree::{Clause, Instruction, Noun, Phrase, Place, Pronoun, Relation, Tool, Verb};
use super::verbs::RECIPROCAL;
use crate::diagnostic::Span;

/// The largest expression that one reference may stand for; `between it and it` doubles it at every use.
const MAX_REFERENCE: usize = 512;

/// Resolves all references of an instruction.
///
/// # Errors
/// When a pronoun has no antecedent, or references grow without bound.
pub fn resolve(instruction: &Instruction) -> Result<Plan, InstructionError> {
    let (plan, problems) = resolve_some(instruction)?;
    match problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(plan),
    }
}

/// Resolves the references of an instruction as far as possible. A pronoun that nothing explains stands for itself, as
/// in `put "it" (in "box")`, and is a problem.
///
/// # Errors
/// When no clause is left: the first problem.
pub fn resolve_some(instruction: &Instruction) -> Result<(Plan, Vec<InstructionError>), InstructionError> {
    let mut discourse = Discourse::default();
    let mut steps: Vec<Step> = Vec::new();
    let mut problems = Vec::new();
    for clause in &instruction.clauses {
        match step(clause, &mut discourse, false) {
            Ok(step) => steps.push(step),
            Err(problem) => {
                problems.push(problem);
                steps.extend(step(clause, &mut discourse, true));
            }
        }
    }
    if steps.is_empty() {
        return Err(problems.into_iter().next().unwrap_or(InstructionError::Empty));
    }
    let mut plans = Vec::new();
    let mut rest = &steps[..];
    while let [first, after @ ..] = rest {
        let shared = match first.tool {
            Some(_) => after.iter().take_while(|step| step.shares_tool).count(),
            None => after.iter().take_while(|step| step.tool.is_none()).count(),
        };
        let (group, later) = rest.split_at(1 + shared);
        let motions = emit_all(group);
        match &first.tool {
            Some(tool) => plans.push(Plan::Call("with", vec![tool.clone(), Plan::seq(motions)])),
            None => plans.extend(motions),
        }
        rest = later;
    }
    Ok((Plan::seq(plans), problems))
}

/// The motions of steps that are done with the same thing.
fn emit_all(steps: &[Step]) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut rest = steps;
    while let [first, after @ ..] = rest {
        let together = first.verb.holds() && (first.objects.len() > 1 || first.objects.iter().any(|e| e.count > 1));
        let followers = after.iter().take_while(|step| together && step.continues).count();
        let (group, later) = rest.split_at(1 + followers);
        plans.extend(emit(group));
        rest = later;
    }
    plans
}

/// One clause with its references resolved.
struct Step {
    verb: Verb,
    name: String,
    objects: Vec<Entity>,
    goal: Option<Plan>,
    times: u32,
    /// Whether the objects are those of the clause before, said as `them`.
    continues: bool,
    /// What it is done with.
    tool: Option<Plan>,
    /// Whether that is what the step before is done with.
    shares_tool: bool,
}

/// The motions of steps that share their objects: for each object, each step.
fn emit(group: &[Step]) -> Vec<Plan> {
    let [first, ..] = group else { return Vec::new() };
    let motion = |step: &Step, object: Option<&Entity>| {
        let name = (step.verb == Verb::Act).then(|| Plan::Text(step.name.clone()));
        let primitive = match (step.verb, object, &step.goal) {
            (Verb::Act, None, _) => "act",
            (Verb::Act, Some(_), Some(_)) => "act_to",
            (verb, ..) => verb.primitive(),
        };
        let arguments = name.into_iter().chain(object.map(|entity| entity.plan.clone())).chain(step.goal.clone());
        Plan::Call(primitive, arguments.collect()).times(step.times)
    };
    if first.objects.is_empty() {
        return group.iter().map(|step| motion(step, None)).collect();
    }
    let each = |entity: &Entity| {
        let motions: Vec<Plan> = group.iter().map(|step| motion(step, Some(entity))).collect();
        if entity.count == 1 { motions } else { vec![Plan::seq(motions).times(entity.count)] }
    };
    first.objects.iter().flat_map(each).collect()
}

fn step(clause: &Clause, discourse: &mut Discourse, is_lenient: bool) -> Result<Step, InstructionError> {
    let mut scene =
        Scene { discourse, landmarks: Vec::new(), said: Vec::new(), current: Vec::new(), naming: None, is_lenient };
    for noun in &clause.objects {
        let entities = scene.noun(noun, Role::Object(clause.verb))?;
        scene.said.extend(entities);
    }
    for place in &clause.sources {
        let pose = scene.place(place)?;
        for entity in &mut scene.said {
            entity.plan = Plan::Call("at", vec![entity.plan.clone(), pose.clone()]);
        }
    }
    let (tool, shares_tool) = match &clause.tool {
        Some(Tool::Here(Noun::Pronoun(Pronoun::It, span)) | Tool::From(Noun::Pronoun(Pronoun::It, span))) => {
            let held = scene.discourse.it(Role::Object(Verb::Grasp), &[]);
            (Some(held.ok_or_else(|| no_antecedent("it", *span))?.plan), false)
        }
        Some(Tool::Here(noun) | Tool::From(noun)) => (Some(scene.one(noun, Role::Whole)?.plan), false),
        Some(Tool::Same) => (None, true),
        None => (None, false),
    };
    // Marks of the objects are less salient than the target, which is what the clause is about.
    let marks = std::mem::take(&mut scene.landmarks);
    let mut objects = std::mem::take(&mut scene.said);
    if clause.verb == Verb::Act && super::lexicon::lists(RECIPROCAL, &clause.name) {
        // `swap the bowl and the cup` is one action on both.
        match &objects[..] {
            [first, second] => objects = vec![pair(first, second)],
            [each] if each.count == 2 => objects = vec![pair(each, each)],
            _ => {}
        }
    }
    scene.current.clone_from(&objects);
    let target = clause.target.as_ref().filter(|_| !(clause.verb == Verb::Act && objects.is_empty()));
    let goal = match (&target, clause.verb) {
        (None, _) => None,
        (Some(Place::Relative(relation, noun)), Verb::Stack) => Some(scene.one(noun, Role::Landmark(*relation))?.plan),
        (Some(Place::Implied(relation, span)), Verb::Stack) => Some(scene.implied(*relation, *span)?.plan),
        (Some(place), _) => Some(scene.place(place)?),
    };
    let mut landmarks = scene.landmarks;
    landmarks.extend(marks);
    let continues = matches!(clause.objects[..], [Noun::Pronoun(Pronoun::Them | Pronoun::Both, _)]);
    let verb = if clause.verb == Verb::Put && discourse.holds(&objects) { Verb::Place } else { clause.verb };
    let relation = match &clause.target {
        Some(Place::Relative(relation, _) | Place::Implied(relation, _)) => Some(*relation),
        _ => None,
    };
    discourse.add(Event { verb, objects: objects.clone(), relation, landmarks });
    let name = clause.name.clone();
    Ok(Step { verb, name, objects, goal, times: clause.times, continues, tool, shares_tool })
}

/// A clause being resolved.
struct Scene<'d> {
    discourse: &'d Discourse,
    /// Landmarks met so far.
    landmarks: Vec<Entity>,
    /// The clause's objects before the one being read, which `the cabinet and its top drawer` refers to.
    said: Vec<Entity>,
    /// All of the clause's objects, once they are read; none of them is its own landmark.
    current: Vec<Entity>,
    /// Nouns and adjectives of the thing being described, which `the block on the other one` refers to.
    naming: Option<(Vec<String>, Vec<String>)>,
    /// Whether a pronoun without an antecedent stands for itself.
    is_lenient: bool,
}

impl Scene<'_> {
    fn noun(&mut self, noun: &Noun, role: Role) -> Result<Vec<Entity>, InstructionError> {
        let (pronoun, span) = match noun {
            Noun::Phrase(phrase) => return Ok(vec![self.phrase(phrase, role)?]),
            Noun::Pronoun(pronoun, span) => (*pronoun, *span),
        };
        let found = match pronoun {
            Pronoun::It => {
                let said = self.said.last().filter(|_| !matches!(role, Role::Object(_))).cloned();
                let found = said.or_else(|| self.discourse.it(role, &self.current));
                // `slide the knife into its slot`: the clause's own object, if nothing was said before.
                let own = || self.current.last().filter(|_| role == Role::Whole).cloned();
                found.or_else(own).map(|entity| vec![entity])
            }
            Pronoun::Them | Pronoun::Both => {
                let own = || self.current.last().filter(|entity| role == Role::Whole && entity.is_plural);
                self.discourse.them().or_else(|| own().map(|entity| vec![entity.clone()]))
            }
        };
        let itself = || self.is_lenient.then(|| vec![unexplained(pronoun)]);
        found.or_else(itself).ok_or_else(|| no_antecedent(pronoun.word(), span))
    }

    /// A reference where only one thing can stand: several become `both`.
    fn one(&mut self, noun: &Noun, role: Role) -> Result<Entity, InstructionError> {
        let at = self.landmarks.len();
        let mut entities = self.noun(noun, role)?;
        if let Noun::Phrase(Phrase { also, .. }) = noun {
            for other in also {
                entities.extend(self.noun(other, role)?);
            }
        }
        let mut entities = entities.into_iter();
        let Some(first) = entities.next() else {
            return Err(no_antecedent("them", noun.span()));
        };
        let entity = entities.fold(first, |group, next| pair(&group, &next));
        if entity.plan.size() > MAX_REFERENCE {
            return Err(InstructionError::TooLong {
                found: entity.plan.size(),
                limit: MAX_REFERENCE,
                unit: "nested references",
            });
        }
        if matches!(role, Role::Landmark(_)) {
            // Before the landmarks of its own description, which are further from what the clause is about.
            self.landmarks.insert(at, entity.clone());
        }
        Ok(entity)
    }

    /// A landmark; of `on both bowls` both of them.
    fn counted(&mut self, noun: &Noun, role: Role) -> Result<Entity, InstructionError> {
        let one = self.one(noun, role)?;
        Ok(if one.count == 2 { pair(&one, &one) } else { one })
    }

    fn phrase(&mut self, phrase: &Phrase, role: Role) -> Result<Entity, InstructionError> {
        let mut adjectives = phrase.adjectives.clone();
        let mut nouns = phrase.nouns.clone();
        let mut plural = phrase.plural.clone().filter(|_| phrase.count.is_none() && !phrase.all);
        if nouns.last().is_some_and(|noun| noun == "one") {
            let here = self.said.last().or(self.current.last());
            let like = self.discourse.like(role).or(here);
            // `pour the contents of the red mug into the green one`: a part that holds nothing gives its whole.
            let like = like.map(|like| match &like.whole {
                Some(whole) if matches!(role, Role::Landmark(_)) && !like.kind.holds && !like.kind.carries => whole,
                _ => like,
            });
            let like = like.map(|like| (like.nouns.clone(), like.adjectives.clone())).or_else(|| self.naming.clone());
            let (like_nouns, like_adjectives) = like.ok_or_else(|| no_antecedent("one", phrase.span))?;
            nouns = like_nouns;
            plural = None;
            if adjectives.is_empty() {
                adjectives = like_adjectives;
            }
        }
        let head = nouns.last().cloned().unwrap_or_default();
        let kind = super::lexicon::noun(&head).unwrap_or_default();
        let whole = match &phrase.whole {
            Some(whole) => {
                let owner = match &**whole {
                    Noun::Pronoun(Pronoun::It, _) if self.said.is_empty() => {
                        self.discourse.owner_of(&head, role == Role::Object(Verb::Close))
                    }
                    _ => None,
                };
                Some(match owner {
                    Some(owner) => owner,
                    None => self.one(whole, Role::Whole)?,
                })
            }
            None if kind.part && nouns.len() == 1 && phrase.count.is_none() && !phrase.all => {
                let is_bare = phrase.positions.is_empty() && adjectives.is_empty() && phrase.places.is_empty();
                match self.discourse.mention(&head, |e| is_bare || e.whole.is_some()) {
                    // `close the drawer` after `open the top drawer of the cabinet` is that very drawer.
                    Some(same) if is_bare => return Ok(same.clone()),
                    found => found.and_then(|other| other.whole.as_deref().cloned()),
                }
            }
            None => None,
        };
        let plan = name(&adjectives, &nouns, plural.as_deref(), phrase);
        // `the top left drawer` is the top one of the left drawers.
        let mut plan =
            phrase.positions.iter().rev().fold(plan, |plan, position| {
                Plan::Call("at", vec![plan, Plan::Call(position.primitive(), Vec::new())])
            });
        if let Some(whole) = &whole {
            plan = Plan::Call("part", vec![plan, whole.plan.clone()]);
        }
        for place in &phrase.places {
            self.naming = Some((nouns.clone(), adjectives.clone()));
            let pose = self.place(place)?;
            plan = Plan::Call("at", vec![plan, pose]);
        }
        if phrase.all {
            plan = Plan::Call("all", vec![plan]);
        }
        if plan.size() > MAX_REFERENCE {
            return Err(InstructionError::TooLong {
                found: plan.size(),
                limit: MAX_REFERENCE,
                unit: "nested references",
            });
        }
        let (whole, count) = (whole.map(Box::new), phrase.count.unwrap_or(1));
        Ok(Entity { plan, head, nouns, adjectives, kind, whole, count, is_plural: phrase.plural.is_some() })
    }

    fn place(&mut self, place: &Place) -> Result<Plan, InstructionError> {
        Ok(match place {
            Place::Position(position) => Plan::Call(position.primitive(), Vec::new()),
            Place::Relative(relation, noun) => {
                let landmark = self.counted(noun, Role::Landmark(*relation))?;
                Plan::Call(relation.primitive(), vec![landmark.plan])
            }
            Place::Other(name, noun) => {
                let landmark = self.counted(noun, Role::Landmark(Relation::NextTo))?;
                Plan::Call("rel", vec![Plan::Text(name.clone()), landmark.plan])
            }
            Place::Implied(relation, span) => {
                let landmark = self.implied(*relation, *span)?;
                Plan::Call(relation.primitive(), vec![landmark.plan])
            }
            Place::Between(first, second) => {
                let role = Role::Landmark(Relation::NextTo);
                let (first, second) = match (&**first, self.noun(first, role)?.as_slice()) {
                    (Noun::Pronoun(..), [first, second]) => (first.clone(), second.clone()),
                    _ => (self.one(first, role)?, self.one(second, role)?),
                };
                Plan::Call("between", vec![first.plan, second.plan])
            }
        })
    }

    fn implied(&mut self, relation: Relation, span: Span) -> Result<Entity, InstructionError> {
        let found = self.discourse.implied(relation, &self.current);
        let word = match relation {
            Relation::In => "inside",
            Relation::OnTopOf => "on top",
            Relation::Under => "underneath",
            _ => "there",
        };
        let entity = found.ok_or_else(|| no_antecedent(word, span))?;
        self.landmarks.push(entity.clone());
        Ok(entity)
    }
}

/// The name of a thing: `yellow and white mug`, `bottle of wine`, `cup with red handle`.
fn name(adjectives: &[String], nouns: &[String], plural: Option<&str>, phrase: &Phrase) -> Plan {
    let (head, compound) = nouns.split_last().map_or(("", nouns), |(head, before)| (head.as_str(), before));
    let words = adjectives.iter().chain(compound).map(String::as_str).chain([plural.unwrap_or(head)]);
    let mut name = words.collect::<Vec<_>>().join(" ");
    for (joint, more) in [
        (" of ", &phrase.contents),
        (" from ", &phrase.from),
        (" with ", &phrase.feature),
        (" except ", &phrase.except),
    ] {
        if let Some(more) = more {
            name.push_str(joint);
            name.push_str(more);
        }
    }
    Plan::Text(name)
}

/// A pronoun that nothing explains, as a thing of that name.
fn unexplained(pronoun: Pronoun) -> Entity {
    let head = pronoun.word().to_owned();
    Entity {
        plan: Plan::Text(head.clone()),
        nouns: vec![head.clone()],
        head,
        adjectives: Vec::new(),
        kind: Kind::default(),
        whole: None,
        count: 1,
        is_plural: pronoun != Pronoun::It,
    }
}

fn no_antecedent(word: &str, span: Span) -> InstructionError {
    InstructionError::NoAntecedent { word: word.to_owned(), span }
}
