//! Markup that data cannot forge: by the types, everything but literals of this crate is escaped.

use std::fmt::{self, Display, Write};

use super::number::short;

/// Markup under construction.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Adds a literal of this crate. Data does not have its lifetime, so it cannot be added this way.
    pub(crate) fn markup(&mut self, literal: &'static str) {
        self.0.push_str(literal);
    }

    /// Adds data, escaped for text and for quoted attributes alike.
    pub(crate) fn text(&mut self, value: &(impl Display + ?Sized)) {
        // Writing to a string fails only if `value` itself gives up; then there is nothing more to show of it.
        let _ = write!(Escaped(&mut self.0), "{value}");
    }

    /// The finished page.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(character),
                // Control characters are errors in HTML; reordering marks would let data rearrange our text.
                '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    self.0.push('\u{fffd}');
                }
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

/// Writes literals as markup and `{expressions}` as escaped data: `put!(out, "<p>", {name}, "</p>")`.
macro_rules! put {
    ($out:expr $(,)?) => {};
    ($out:expr, {$value:expr} $(, $($rest:tt)*)?) => {{
        $out.text(&$value);
        $(put!($out, $($rest)*);)?
    }};
    ($out:expr, $markup:literal $(, $($rest:tt)*)?) => {{
        $out.markup($markup);
        $(put!($out, $($rest)*);)?
    }};
}
pub(crate) use put;

/// A paragraph in the place of a figure that has no data.
pub(crate) fn missing(out: &mut Html, why: &str) {
    put!(out, "<p class=\"missing\">", { why }, "</p>\n");
}

/// An interval in brackets.
pub(crate) fn range(out: &mut Html, low: f64, high: f64) {
    put!(out, " <small class=\"range\">[", { short(low) }, ", ", { short(high) }, "]</small>");
}

/// A list of names with their descriptions; nothing for an empty one.
pub(crate) fn definitions<'a>(out: &mut Html, all: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut all = all.filter(|(_, description)| !description.is_empty()).peekable();
    if all.peek().is_none() {
        return;
    }
    put!(out, "<ul class=\"notes\">");
    for (name, description) in all {
        put!(out, "<li><b>", { name }, "</b>: ", { description }, "</li>");
    }
    put!(out, "</ul>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_escaped_and_literals_are_not() {
        let mut out = Html::default();
        put!(out, "<p title=\"", { "\"'><script>&\u{0}\u{202e}" }, "\">", { 1.5 }, "</p>");
        let wanted = "<p title=\"&quot;&#39;&gt;&lt;script&gt;&amp;\u{fffd}\u{fffd}\">1.5</p>";
        assert_eq!(out.into_string(), wanted);
    }
}
