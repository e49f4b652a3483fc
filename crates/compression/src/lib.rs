//! Library learning: anti-unification, description length and rewriting.
