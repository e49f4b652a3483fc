//! Links between the documents: every relative link of a Markdown file leads to a file, and its anchor to a heading.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Markdown files below a directory, but for what is built, downloaded or hidden.
fn documents(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = !name.starts_with('.') && !matches!(name.as_str(), "target" | "shared" | "node_modules");
        if is_ours && path.is_dir() && !path.is_symlink() {
            documents(&path, found);
        } else if is_ours && name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The text without blocks and spans of code, in which brackets are not links. Lines stay where they are.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut fence = false;
    let mut span = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fence = !fence;
        } else if !fence {
            for letter in line.chars() {
                span ^= letter == '`';
                kept.push(if span && letter != '`' { ' ' } else { letter });
            }
            // A paragraph ends every span.
            span &= !line.trim().is_empty();
        }
        kept.push('\n');
    }
    kept
}

/// The targets of links and pictures, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let text = without_code(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("](").map(|at| from + at) {
        let target = &text[at + 2..];
        let end = target.find(')').unwrap_or(target.len());
        let target = target[..end].split_whitespace().next().unwrap_or_default();
        found.push((text[..at].lines().count(), target.trim_matches(['<', '>']).to_owned()));
        from = at + 2;
    }
    found
}

/// The anchors of a document's headings, as GitHub makes them: lower case, no punctuation, dashes for spaces.
fn anchors(text: &str) -> Vec<String> {
    let mut fence = false;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        fence ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !fence) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        let anchor: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let count = counts.entry(anchor.clone()).or_default();
        found.push(if *count == 0 { anchor.clone() } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// What is wrong with a link of a document, if anything.
fn broken(document: &Path, target: &str) -> Option<String> {
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let to = if path.is_empty() { document.to_owned() } else { document.parent()?.join(path.replace("%20", " ")) };
    let depth = to.strip_prefix(root()).unwrap_or(&to).components().try_fold(0_i32, |depth, part| {
        let depth = if part == Component::ParentDir { depth - 1 } else { depth + 1 };
        (depth >= 0).then_some(depth)
    });
    if depth.is_none() || !to.exists() {
        return Some(format!("`{target}` leads to nothing"));
    }
    let anchor = anchor.filter(|_| to.extension().is_some_and(|extension| extension == "md"))?;
    let text = fs::read_to_string(&to).ok()?;
    (!anchors(&text).iter().any(|known| known == anchor)).then(|| format!("`{target}` leads to no heading"))
}

#[test]
fn no_document_has_a_dead_link() {
    let mut all = Vec::new();
    documents(&root(), &mut all);
    assert!(all.len() > 15 && all.iter().any(|path| path.ends_with("results/loop/README.md")), "{all:?}");
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in &all {
        let text = fs::read_to_string(document).unwrap();
        for (line, target) in links(&text) {
            count += 1;
            let shown = document.strip_prefix(root()).unwrap_or(document).display();
            wrong.extend(broken(document, &target).map(|why| format!("{shown}:{line}: {why}")));
        }
    }
    assert!(count > 40, "only {count} links were found");
    assert!(wrong.is_empty(), "dead links:\n{}", wrong.join("\n"));
}

#[test]
fn a_dead_link_is_found() {
    let document = root().join("results/README.md");
    let text = "# One\n\nsee [a](loop/README.md), [b](nothing.md) and\n[c](loop/README.md#no-such-heading) `[d](x)`\n\n```\n[e](y)\n```\n";
    let found: Vec<(usize, bool)> =
        links(text).into_iter().map(|(line, target)| (line, broken(&document, &target).is_some())).collect();
    assert_eq!(found, [(3, false), (3, true), (4, true)]);
    assert!(broken(&document, "https://example.org/x").is_none() && broken(&document, "../../../x").is_some());
    assert_eq!(anchors("# One\n## The `a_b`, or: c\n# One\n"), ["one", "the-a_b-or-c", "one-1"]);
}
