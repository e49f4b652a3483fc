//! Programs as marked-up text: parameters with their types, library entries and skills as links, strings in another shade.
//! It reads words and not the grammar, so any text is shown unchanged.

use super::html::{Html, put};
use crate::programs::Hole;
use crate::report::Report;

/// Writes a program. A parameter shows its type where it first occurs, which is where it is bound.
pub(crate) fn program(out: &mut Html, text: &str, holes: &[Hole], report: &Report) {
    let mut seen = vec![false; holes.len()];
    for word in words(text) {
        if let Some(index) = holes.iter().position(|hole| hole.name == word) {
            let hole = &holes[index];
            put!(out, "<span class=\"hole\" title=\"", { hole.name }, " : ", { hole.ty }, "\">", { word });
            if !seen[index] {
                put!(out, "<i>:", { hole.ty }, "</i>");
                seen[index] = true;
            }
            put!(out, "</span>");
        } else if let Some(index) = report.library.iter().position(|entry| entry.name == word) {
            put!(out, "<a class=\"call\" href=\"#entry-", { index }, "\">", { word }, "</a>");
        } else if let Some(index) = report.skills.iter().position(|skill| skill.name == word) {
            put!(out, "<a class=\"primitive\" href=\"#skill-", { index }, "\" title=\"");
            put!(out, { report.skills[index].title() }, "\">", { word }, "</a>");
        } else if word.starts_with('"') {
            put!(out, "<span class=\"string\">", { word }, "</span>");
        } else if matches!(word, "seq" | "repeat" | "branch") {
            put!(out, "<span class=\"form\">", { word }, "</span>");
        } else {
            out.text(word);
        }
    }
}

/// Cuts a text into names, strings and everything between them. Joined, the pieces are the text.
fn words(text: &str) -> Vec<&str> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if first == '"' {
            string_end(rest)
        } else if is_name(first) {
            rest.find(|character| !is_name(character)).unwrap_or(rest.len())
        } else {
            rest.find(|character| is_name(character) || character == '"').unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// The position after the closing quote, or the end of a string that is not closed.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_parameter_shows_its_type_once() {
        let mut out = Html::default();
        let holes = [Hole { name: "x0".into(), ty: "Lang".into() }];
        program(&mut out, "\\x0. seq[pick x0, say \"x0 \\\" <\"]", &holes, &crate::report::empty());
        let wanted = "\\<span class=\"hole\" title=\"x0 : Lang\">x0<i>:Lang</i></span>. <span class=\"form\">seq</span>\
                      [pick <span class=\"hole\" title=\"x0 : Lang\">x0</span>, say \
                      <span class=\"string\">&quot;x0 \\&quot; &lt;&quot;</span>]";
        assert_eq!(out.into_string(), wanted);
    }

    proptest! {
        #[test]
        fn words_are_the_whole_text(text in any::<String>()) {
            prop_assert_eq!(words(&text).concat(), text);
        }
    }
}
