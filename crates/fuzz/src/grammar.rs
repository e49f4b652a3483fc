//! Texts that are mostly good: by rule where the parser is the target, and printed from well-typed terms where everything
//! behind the parser is.

use crate::random::Random;

/// A term in concrete syntax, names bound and brackets closed, types left to chance.
pub(crate) fn program(random: &mut Random, constants: &[String]) -> String {
    let mut text = String::new();
    let budget = random.magnitude(40);
    term(random, constants, &mut Vec::new(), budget, &mut text);
    text
}

/// A type or a type scheme.
pub(crate) fn type_text(random: &mut Random) -> String {
    let mut text = String::new();
    match random.below(6) {
        0 => text.push_str("forall a b c."),
        1 => text.push_str("∀a b c. "),
        2 => text.push_str("# a comment\n"),
        _ => {}
    }
    let budget = random.magnitude(60);
    type_into(random, budget, &mut text);
    text
}

/// An instruction in English, in the words and turns of LIBERO.
pub(crate) fn instruction(random: &mut Random) -> String {
    let mut clauses = vec![clause(random, false)];
    for _ in 0..random.magnitude(4) - 1 {
        clauses.push(clause(random, true));
    }
    let joint = random.word(&[" and ", ", ", " and then ", " then ", ", and ", ". "]);
    let mut text = clauses.join(joint);
    match random.below(12) {
        0 => text = format!("KITCHEN_SCENE{}_{}_demo", random.below(20), text.replace(' ', "_")),
        1 => text = text.to_uppercase(),
        2 => text.push('.'),
        3 => text = format!("please {text}"),
        _ => {}
    }
    text
}

/// An s-expression in Stitch's syntax, closed.
pub(crate) fn s_expression(random: &mut Random, params: bool) -> String {
    let mut text = String::new();
    let budget = random.magnitude(60);
    s_expression_into(random, params, 0, budget, &mut text);
    text
}

/// A few s-expressions with much in common, one a line: instances of one or two templates.
pub(crate) fn corpus(random: &mut Random) -> String {
    let templates: Vec<String> = (0..1 + random.below(2)).map(|_| s_expression(random, true)).collect();
    let lines: Vec<String> = (0..1 + random.below(6))
        .map(|_| {
            let mut line = random.pick(&templates).cloned().unwrap_or_default();
            for parameter in 0..3 {
                let mut argument = String::new();
                let budget = random.magnitude(8);
                s_expression_into(random, false, 0, budget, &mut argument);
                line = line.replace(&format!("#{parameter}"), &argument);
            }
            match random.once_in(3) {
                true => format!("(wrap {line} {line})"),
                false => line,
            }
        })
        .collect();
    lines.join("\n")
}

fn term(random: &mut Random, constants: &[String], scope: &mut Vec<&'static str>, budget: usize, text: &mut String) {
    if random.once_in(30) {
        text.push_str(random.word(&[" ", "\n", " # a comment\n", "\t"]));
    }
    if budget <= 1 {
        return leaf(random, constants, scope, text);
    }
    let share = (budget - 1) / 2;
    match random.below(10) {
        0 | 1 => {
            let name = random.word(&["x", "y", "p", "pick", "x'", "_1", "in"]);
            text.push_str(random.word(&["(\\", "(λ", "(\\ "]));
            text.push_str(name);
            if random.once_in(3) {
                text.push(':');
                let size = random.magnitude(4);
                type_into(random, size, text);
            }
            text.push('.');
            scope.push(name);
            term(random, constants, scope, budget - 1, text);
            scope.pop();
            text.push(')');
        }
        2..=4 => {
            text.push('(');
            let arguments = 1 + random.below(3);
            if random.once_in(3) {
                term(random, constants, scope, share, text);
            } else {
                leaf(random, constants, scope, text);
            }
            for _ in 0..arguments {
                text.push(' ');
                term(random, constants, scope, share / arguments, text);
            }
            text.push(')');
        }
        5 | 6 => {
            let items = random.magnitude(6) - usize::from(random.once_in(3));
            list(random, constants, scope, ("seq[", items, "]"), budget, text);
        }
        7 => list(random, constants, scope, ("repeat(", 2, ")"), budget, text),
        8 => list(random, constants, scope, ("branch(", 3, ")"), budget, text),
        _ => leaf(random, constants, scope, text),
    }
}

fn list(
    random: &mut Random,
    constants: &[String],
    scope: &mut Vec<&'static str>,
    (open, items, close): (&str, usize, &str),
    budget: usize,
    text: &mut String,
) {
    text.push_str(open);
    for item in 0..items {
        if item > 0 {
            text.push_str(random.word(&[",", ", ", " ,\n"]));
        }
        term(random, constants, scope, (budget - 1) / items, text);
    }
    if items > 0 && random.once_in(8) {
        text.push(',');
    }
    text.push_str(close);
}

fn leaf(random: &mut Random, constants: &[String], scope: &[&'static str], text: &mut String) {
    match random.below(8) {
        0 | 1 if !scope.is_empty() => text.push_str(random.word(scope)),
        2 => text.push_str(random.word(&["0", "1", "7", "18446744073709551615", "18446744073709551616", "00"])),
        3 => text.push_str(random.word(&["\"bowl\"", "\"\"", r#""\"\\\n\u{e9}""#, "\"é 🦀\"", "true", "false"])),
        4 => {
            text.push_str(random.word(&["pose[", "twist[", "wrench["]));
            for value in 0..6 {
                text.push_str(if value > 0 { ", " } else { "" });
                text.push_str(random.word(&["0", "1", "-0.5", "1e-3", "-0.0", "1e308", "0.1", "123456789.123456789"]));
            }
            text.push(']');
        }
        5 if random.once_in(10) => text.push_str(random.word(&["$0", "$1", "$4294967295"])),
        _ => text.push_str(random.pick(constants).map_or("seq[]", String::as_str)),
    }
}

fn type_into(random: &mut Random, budget: usize, text: &mut String) {
    if budget <= 1 || random.once_in(4) {
        let base = ["Lang", "Motion", "Pose", "Nat", "Bool", "Twist", "Wrench", "GripperPhase"];
        let variable = ["a", "b", "c", "a1", "z"];
        return text.push_str(match random.once_in(3) {
            true => random.word(&variable),
            false => random.word(&base),
        });
    }
    let bracketed = random.once_in(3);
    text.push_str(if bracketed { "(" } else { "" });
    // A domain with an arrow needs brackets, or else it is read as more arguments, which is as good.
    type_into(random, (budget - 1) / 2, text);
    text.push_str(random.word(&[" -> ", "->", " → ", "\n->"]));
    type_into(random, (budget - 1) / 2, text);
    text.push_str(if bracketed { ")" } else { "" });
}

fn clause(random: &mut Random, later: bool) -> String {
    let object = match later && random.once_in(3) {
        true => random.word(&["it", "them", "both"]).to_string(),
        false => phrase(random, 2),
    };
    match random.below(6) {
        0 | 1 => {
            let verb = random.word(&["put", "place", "push", "stack", "move", "pull", "set"]);
            format!("{verb} {object} {}", place(random, 2))
        }
        2 => format!("pick up {object} and {} it {}", random.word(&["put", "place"]), place(random, 2)),
        3 => {
            let (verb, particle) = [("turn", "on"), ("turn", "off"), ("pick", "up"), ("switch", "on")][random.below(4)];
            match random.once_in(2) {
                true => format!("{verb} {particle} {object}"),
                false => format!("{verb} {object} {particle}"),
            }
        }
        _ => {
            let verb = random.word(&["open", "close", "pick up", "grasp", "lift", "release", "shut", "grab", "reach"]);
            format!("{verb} {object}")
        }
    }
}

fn phrase(random: &mut Random, depth: usize) -> String {
    let mut words = vec![random.word(&["the", "the", "the", "a", "both", "two", ""])];
    for _ in 0..random.below(3) {
        words.push(random.word(&[
            "black",
            "white",
            "yellow and white",
            "top",
            "left",
            "wooden",
            "middle",
            "red",
            "small",
        ]));
    }
    words.push(random.word(&[
        "bowl",
        "plate",
        "mug",
        "drawer",
        "cabinet",
        "stove",
        "basket",
        "moka pot",
        "wine bottle",
        "cream cheese box",
        "alphabet soup",
        "microwave",
        "tray",
        "book",
        "caddy",
        "ramekin",
        "frying pan",
        "cookies",
        "bowls",
        "shelf",
    ]));
    words.retain(|word| !word.is_empty());
    let mut text = words.join(" ");
    if depth > 0 && random.once_in(3) {
        text.push(' ');
        text.push_str(&match random.once_in(2) {
            true => format!("of {}", phrase(random, depth - 1)),
            false => place(random, depth - 1),
        });
    }
    text
}

fn place(random: &mut Random, depth: usize) -> String {
    if random.once_in(8) {
        let (one, other) = (phrase(random, 0), phrase(random, 0));
        return format!("between {one} and {other}");
    }
    let relation = random.word(&[
        "on",
        "in",
        "into",
        "under",
        "on top of",
        "next to",
        "to the left of",
        "to the right of",
        "in front of",
        "inside",
        "at the back of",
        "behind",
        "to the front of",
        "in the middle of",
        "onto",
        "from",
    ]);
    let depth = depth.saturating_sub(1);
    format!("{relation} {}", phrase(random, depth))
}

fn s_expression_into(random: &mut Random, params: bool, binders: usize, budget: usize, text: &mut String) {
    if budget <= 1 || random.once_in(8) {
        match random.below(8) {
            0 | 1 if binders > 0 => text.push_str(&format!("${}", random.below(binders))),
            2 if params => text.push_str(&format!("#{}", random.below(3))),
            _ => {
                text.push_str(random.word(&["a", "b", "f", "g", "cons", "+", "1", "-0.5", "pi", "fn_0", "é", "lam_x"]))
            }
        }
        return;
    }
    text.push('(');
    if random.once_in(5) {
        text.push_str(random.word(&["lam ", "lam ", "lam ", "lambda "]));
        s_expression_into(random, params, binders + 1, budget - 1, text);
    } else {
        let parts = 1 + random.below(4);
        for part in 0..parts {
            text.push_str(if part > 0 { random.word(&[" ", " ", "  ", "\t"]) } else { "" });
            s_expression_into(random, params, binders, (budget - 1) / parts, text);
        }
    }
    text.push(')');
}
