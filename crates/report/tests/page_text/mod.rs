//! A reader of our own pages that is stricter than any browser: a bracket that is not a tag of ours is an error.

/// A piece of a page.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// An opening tag.
    Tag { name: &'a str, attributes: Vec<(&'a str, &'a str)> },
    /// A closing tag, text, or what stands in `style` and `script`.
    Other,
}

/// Elements that have no end.
const VOID: [&str; 4] = ["meta", "link", "img", "input"];

/// Every element that the page is made of.
const KNOWN: &str = "html head meta link title style body header nav main section article h1 h2 h3 p a b i small sub span div \
                     ul li dl dt dd pre code img figure figcaption details summary label input button table thead tbody tr \
                     th td svg g path rect circle text tspan script";

/// Cuts a page into pieces, or says where it is not well formed.
pub(crate) fn pieces(page: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut rest = page.strip_prefix("<!doctype html>").ok_or("no doctype")?;
    let mut pieces = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    while !rest.is_empty() {
        let text = rest.find('<').unwrap_or(rest.len());
        let wrong = |what: &str| format!("{what} at `{}`", rest.chars().take(80).collect::<String>());
        if rest[..text].contains(['>', '\u{0}', '\u{202e}']) {
            return Err(wrong("text that is not escaped"));
        }
        rest = &rest[text..];
        pieces.push(Piece::Other);
        if let Some(end) = rest.strip_prefix("</") {
            let (name, after) = end.split_once('>').ok_or_else(|| wrong("a tag without end"))?;
            if open.pop() != Some(name) {
                return Err(wrong("a tag closed that was not open"));
            }
            rest = after;
        } else if let Some(tag) = rest.strip_prefix('<') {
            let wrong = |what: &str| format!("{what} at `{}`", rest.chars().take(80).collect::<String>());
            let (name, attributes, closed, after) = read_tag(tag).ok_or_else(|| wrong("no tag of ours"))?;
            if !KNOWN.split(' ').any(|known| known == name) {
                return Err(wrong("an element that is not ours"));
            }
            if !closed && !VOID.contains(&name) {
                open.push(name);
            }
            rest = after;
            if name == "style" || name == "script" {
                let end = format!("</{name}>");
                rest = &rest[rest.find(&end).ok_or_else(|| wrong("no end"))?..];
            }
            pieces.push(Piece::Tag { name, attributes });
        }
    }
    if open.is_empty() { Ok(pieces) } else { Err(format!("left open: {open:?}")) }
}

type Tag<'a> = (&'a str, Vec<(&'a str, &'a str)>, bool, &'a str);

/// Name, attributes, whether it closes itself, and what follows.
fn read_tag(text: &str) -> Option<Tag<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let end = text.find(|c| !is_name(c))?;
    let (name, mut rest) = text.split_at(end);
    let mut attributes = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix("/>") {
            return Some((name, attributes, true, after));
        }
        if let Some(after) = rest.strip_prefix('>') {
            return Some((name, attributes, false, after));
        }
        rest = rest.strip_prefix(' ')?.trim_start();
        let end = rest.find(|c: char| !is_name(c) && c != ':')?;
        let (attribute, after) = rest.split_at(end);
        if attribute.is_empty() {
            continue;
        }
        match after.strip_prefix("=\"") {
            Some(value) => {
                let (value, after) = value.split_once('"')?;
                if value.contains(['<', '>']) {
                    return None;
                }
                attributes.push((attribute, value));
                rest = after;
            }
            None => {
                attributes.push((attribute, ""));
                rest = after;
            }
        }
    }
}
