//! Types, terms, parser, printer, inference and evaluation of the typed motor-program language.
