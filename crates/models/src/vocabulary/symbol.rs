//! What a model writes at one step: a whole token of a program, or one number of a vector.
//!
//! A pose, twist or wrench is one token of the language and six symbols here, `twist[0.5` `,0` `,-2` `,0` `,0` `,0`. As
//! one symbol, most vectors of a new episode would never have been seen in training; their numbers have.

use std::fmt;

use language::{Head, Index, Literal, Signature, Term, TermStore, Token, Vector6, parse, parse_type, print};

pub(super) const SYNTAX: [(&str, Token); 4] =
    [("seq[", Token::Seq), ("]", Token::EndSeq), ("repeat(", Token::Repeat), ("branch(", Token::Branch)];

/// One step of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symbol {
    /// A token that is no vector.
    Token(Token),
    /// A vector begins, with its first number.
    Open(VectorKind, Number),
    /// Another number of the vector that is open.
    Next(Number),
}

/// The literals that are six numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VectorKind {
    /// A pose.
    Pose,
    /// A twist.
    Twist,
    /// A wrench.
    Wrench,
}

/// A finite number, compared bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(u64);

/// A vector of which some numbers are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenVector {
    kind: VectorKind,
    numbers: Vec<Number>,
}

/// What a symbol makes of what was written before it.
pub(crate) enum Joined {
    /// A token is whole.
    Whole(Token),
    /// Numbers are missing.
    Open(OpenVector),
}

impl VectorKind {
    const ALL: [VectorKind; 3] = [VectorKind::Pose, VectorKind::Twist, VectorKind::Wrench];

    fn word(self) -> &'static str {
        match self {
            VectorKind::Pose => "pose",
            VectorKind::Twist => "twist",
            VectorKind::Wrench => "wrench",
        }
    }

    fn token(self, numbers: [f64; 6]) -> Option<Token> {
        let vector = Vector6::new(numbers).ok()?;
        let literal = match self {
            VectorKind::Pose => Literal::Pose(vector),
            VectorKind::Twist => Literal::Twist(vector),
            VectorKind::Wrench => Literal::Wrench(vector),
        };
        Some(Token::Head { head: Head::Literal(literal), args: 0 })
    }
}

impl Number {
    fn new(value: f64) -> Option<Number> {
        if value.is_finite() { Some(Number(value.to_bits())) } else { None }
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Display for Number {
    /// The shortest form that reads back as the same bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl OpenVector {
    /// With another number.
    fn with(mut self, number: Number) -> Option<Joined> {
        self.numbers.push(number);
        match <[Number; 6]>::try_from(self.numbers.as_slice()) {
            Ok(all) => self.kind.token(all.map(Number::value)).map(Joined::Whole),
            Err(_) => Some(Joined::Open(self)),
        }
    }
}

impl Symbol {
    /// The symbols of a token, in order.
    pub(super) fn of(token: Token) -> Vec<Symbol> {
        let (kind, vector) = match token {
            Token::Head { head: Head::Literal(Literal::Pose(vector)), args: 0 } => (VectorKind::Pose, vector),
            Token::Head { head: Head::Literal(Literal::Twist(vector)), args: 0 } => (VectorKind::Twist, vector),
            Token::Head { head: Head::Literal(Literal::Wrench(vector)), args: 0 } => (VectorKind::Wrench, vector),
            _ => return vec![Symbol::Token(token)],
        };
        let number = |(at, value): (usize, f64)| match at {
            0 => Symbol::Open(kind, Number(value.to_bits())),
            _ => Symbol::Next(Number(value.to_bits())),
        };
        vector.values().into_iter().enumerate().map(number).collect()
    }

    /// What it makes of what is open; nothing where it cannot stand.
    pub(crate) fn join(self, open: Option<OpenVector>) -> Option<Joined> {
        match (self, open) {
            (Symbol::Token(token), None) => Some(Joined::Whole(token)),
            (Symbol::Open(kind, number), None) => OpenVector { kind, numbers: Vec::new() }.with(number),
            (Symbol::Next(number), Some(open)) => open.with(number),
            _ => None,
        }
    }

    /// A token that begins with it, for a type checker: which numbers a vector has is no matter of types.
    pub(crate) fn example(self) -> Option<Token> {
        match self {
            Symbol::Token(token) => Some(token),
            Symbol::Open(kind, _) => kind.token([0.0; 6]),
            Symbol::Next(_) => None,
        }
    }

    /// Whether it is a quantity rather than a name or syntax.
    pub fn is_number(self) -> bool {
        match self {
            Symbol::Open(..) | Symbol::Next(_) => true,
            Symbol::Token(Token::Head { head: Head::Literal(literal), .. }) => matches!(literal, Literal::Natural(_)),
            Symbol::Token(_) => false,
        }
    }

    /// Nothing for a literal with arguments, which no type allows.
    pub(super) fn spelling(self, store: &mut TermStore) -> Option<String> {
        let token = match self {
            Symbol::Token(token) => token,
            Symbol::Open(kind, number) => return Some(format!("{}[{number}", kind.word())),
            Symbol::Next(number) => return Some(format!(",{number}")),
        };
        Some(match token {
            Token::Head { head: Head::Constant(name), args } => format!("{}/{args}", store.spelling(name)),
            Token::Head { head: Head::Variable(Index(index)), args } => format!("${index}/{args}"),
            Token::Head { head: Head::Literal(literal), args: 0 } => {
                let term = store.literal(literal);
                print(store, term)
            }
            Token::Head { head: Head::Literal(_), .. } => return None,
            Token::Lambda(None) => "\\".to_owned(),
            Token::Lambda(Some(annotation)) => format!("\\{}", store.types().show(annotation)),
            Token::Apply { args } => format!("@/{args}"),
            token => SYNTAX.iter().find(|(_, known)| *known == token)?.0.to_owned(),
        })
    }

    /// The symbol that a text spells; nothing if it spells none.
    pub(super) fn read(store: &mut TermStore, spelling: &str) -> Option<Symbol> {
        let number = |text: &str| text.parse().ok().and_then(Number::new);
        if let Some(text) = spelling.strip_prefix(',') {
            return number(text).map(Symbol::Next);
        }
        let opens = |kind: &VectorKind| Some((*kind, spelling.strip_prefix(kind.word())?.strip_prefix('[')?));
        if let Some((kind, text)) = VectorKind::ALL.iter().find_map(opens) {
            return Some(Symbol::Open(kind, number(text)?));
        }
        token(store, spelling).map(Symbol::Token)
    }
}

fn token(store: &mut TermStore, spelling: &str) -> Option<Token> {
    if let Some((_, token)) = SYNTAX.iter().find(|(known, _)| *known == spelling) {
        return Some(*token);
    }
    if let Some(annotation) = spelling.strip_prefix('\\') {
        return match annotation {
            "" => Some(Token::Lambda(None)),
            text => Some(Token::Lambda(Some(parse_type(store.types_mut(), text).ok()?))),
        };
    }
    let literal = |literal| Some(Token::Head { head: Head::Literal(literal), args: 0 });
    if let Ok(number) = spelling.parse() {
        return literal(Literal::Natural(number));
    }
    let quoted = spelling.starts_with('"');
    match spelling.rsplit_once('/').filter(|_| !quoted) {
        None => {
            let term = parse(store, &Signature::empty(), spelling).ok()?.term;
            if let Term::Literal(found) = *store.get(term) { literal(found) } else { None }
        }
        Some((head, args)) => {
            let args = args.parse().ok()?;
            if head == "@" {
                return Some(Token::Apply { args });
            }
            let head = match head.strip_prefix('$') {
                Some(index) => Head::Variable(Index(index.parse().ok()?)),
                None => Head::Constant(store.name(head).ok()?),
            };
            Some(Token::Head { head, args })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twist(numbers: [f64; 6]) -> Token {
        VectorKind::Twist.token(numbers).unwrap()
    }

    #[test]
    fn vectors_are_taken_apart_and_joined_again() {
        let token = twist([0.5, -0.0, 1e-300, -2.5e17, 0.0, 0.1 + 0.2]);
        let mut store = TermStore::new();
        let (mut open, mut whole) = (None, Vec::new());
        for symbol in Symbol::of(token) {
            let spelling = symbol.spelling(&mut store).unwrap();
            let read = Symbol::read(&mut store, &spelling).unwrap();
            assert_eq!(read, symbol, "{spelling}");
            assert!(symbol.is_number());
            match read.join(open.take()).unwrap() {
                Joined::Whole(token) => whole.push(token),
                Joined::Open(vector) => open = Some(vector),
            }
        }
        assert_eq!(whole, [token]);
        assert!(open.is_none());
        assert_eq!(Symbol::of(token)[0].spelling(&mut store).as_deref(), Some("twist[0.5"));
        assert_eq!(Symbol::of(token)[1].spelling(&mut store).as_deref(), Some(",-0"));
    }

    #[test]
    fn numbers_stand_in_vectors_alone() {
        let [first, second, ..] = Symbol::of(twist([1.0; 6]))[..] else { panic!() };
        assert!(second.join(None).is_none());
        let Some(Joined::Open(open)) = first.join(None) else { panic!() };
        assert!(first.join(Some(open.clone())).is_none());
        assert!(Symbol::Token(Token::Seq).join(Some(open)).is_none());
        assert_eq!(first.example(), Some(twist([0.0; 6])));
        assert_eq!(second.example(), None);
        for wrong in [",", ",nan", "twist[", "twist[inf", "pose[1,2", "twist[0, 0, 0, 0, 0, 0]"] {
            assert_eq!(Symbol::read(&mut TermStore::new(), wrong), None, "{wrong}");
        }
    }
}
