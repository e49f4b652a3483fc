//! Parameters and calls of library entries, recovered from their text.
//!
//! The library keeps bodies and types as text. These two functions are the only place of the report that reads that text; a
//! library that gives parameters and calls as data replaces them both.

use report::Hole;

/// The first `arity` parameters of a λ-body, with their types from the type of the body.
pub(super) fn parameters(body: &str, ty: &str, arity: usize) -> Vec<Hole> {
    let names = body.split('\\').skip(1).filter_map(|part| part.split(['.', ':', ' ']).next());
    // A polymorphic type has its variables before a full stop.
    let types = ty.rsplit_once('.').map_or(ty, |(_, body)| body);
    names
        .zip(domains(types))
        .take(arity)
        .map(|(name, ty)| Hole { name: name.trim().to_owned(), ty: ty.trim().to_owned() })
        .collect()
}

/// Which of some names occur in a body, in the order of the names.
pub(super) fn called<'a>(body: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = body.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).collect();
    names.filter(|name| words.contains(name)).map(str::to_owned).collect()
}

/// The parts of a type before its arrows, those in brackets whole.
fn domains(ty: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, byte) in ty.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'-' if depth == 0 && ty.as_bytes().get(at + 1) == Some(&b'>') => {
                parts.push(&ty[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(holes: &[Hole]) -> Vec<String> {
        holes.iter().map(|hole| format!("{} : {}", hole.name, hole.ty)).collect()
    }

    #[test]
    fn parameters_have_the_types_before_the_arrows() {
        let body = "\\x0. \\x1. seq[x0 x1, skill_3]";
        assert_eq!(
            shown(&parameters(body, "(Twist -> Motion) -> Nat -> Motion", 2)),
            ["x0 : (Twist -> Motion)", "x1 : Nat"]
        );
        assert_eq!(shown(&parameters(body, "(Twist -> Motion) -> Nat -> Motion", 1)), ["x0 : (Twist -> Motion)"]);
        assert_eq!(shown(&parameters("\\x0. x0", "forall a. a -> a", 1)), ["x0 : a"]);
        assert!(parameters("seq[skill_1]", "Motion", 0).is_empty());
    }

    #[test]
    fn calls_are_whole_words() {
        let body = "\\x0. seq[fn_1 x0, fn_12]";
        assert_eq!(called(body, ["fn_0", "fn_1", "fn_2", "fn_12"].into_iter()), ["fn_1", "fn_12"]);
    }
}
