//! API keys.

use subtle::ConstantTimeEq as _;

/// What stands before the key in the header `Authorization`.
const SCHEME: &str = "Api-Key ";

/// A key that clients must present. Only its hash is kept.
#[derive(Clone)]
pub(crate) struct ApiKey([u8; 32]);

impl ApiKey {
    pub(crate) fn new(key: &str) -> ApiKey {
        ApiKey(*blake3::hash(key.as_bytes()).as_bytes())
    }

    /// Whether this is the key. Hashes are compared in constant time, so neither the time nor the length of the key tells how
    /// much of a guess is right.
    pub(crate) fn is(&self, presented: &str) -> bool {
        self.0.ct_eq(blake3::hash(presented.as_bytes()).as_bytes()).into()
    }

    /// Whether the value of an `Authorization` header has the key.
    pub(crate) fn is_in(&self, header: Option<&str>) -> bool {
        header.and_then(|header| header.strip_prefix(SCHEME)).is_some_and(|presented| self.is(presented))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_opens() {
        let key = ApiKey::new("correct horse");
        assert!(key.is("correct horse") && key.is_in(Some("Api-Key correct horse")));
        for wrong in ["", "correct", "correct horse ", "Correct horse"] {
            assert!(!key.is(wrong), "{wrong}");
        }
        for wrong in [None, Some(""), Some("correct horse"), Some("Bearer correct horse"), Some("Api-Key ")] {
            assert!(!key.is_in(wrong), "{wrong:?}");
        }
    }
}
