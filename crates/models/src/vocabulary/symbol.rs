//! What a model writes at one step: a whole token of a program, or one number of a vector.
//!
//! A pose, twist or wrench is one token of the language and six symbols here, `twist[` `twist,1` … `twist,5`. Each of them
//! carries a number. The number is a separate value, because a new episode has numbers that training never had. The
//! symbols of joints say how many numbers there are, `joints3[` `joints3,1` `joints3,2`, so that it is known when the vector
//! is whole.

use language::{
    Head, Index, JointVector, Literal, Signature, Term, TermStore, Token, Vector6, parse, parse_type, print,
};

pub(super) const SYNTAX: [(&str, Token); 4] =
    [("seq[", Token::Seq), ("]", Token::EndSeq), ("repeat(", Token::Repeat), ("branch(", Token::Branch)];

/// One step of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symbol {
    /// A token that is no vector.
    Token(Token),
    /// A vector begins, with its first number.
    Open(VectorKind),
    /// Another number of the vector that is open, by its place.
    Next(VectorKind, u8),
}

/// The literals that are several numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VectorKind {
    /// A pose.
    Pose,
    /// A twist.
    Twist,
    /// A wrench.
    Wrench,
    /// Joints, with their number.
    Joints(u8),
}

/// A vector of which some numbers are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenVector {
    kind: VectorKind,
    numbers: Vec<f64>,
}

/// What a symbol makes of what was written before it.
pub(crate) enum Joined {
    /// A token is whole.
    Whole(Token),
    /// Numbers are missing.
    Open(OpenVector),
}

impl VectorKind {
    fn word(self) -> String {
        match self {
            VectorKind::Pose => "pose".to_owned(),
            VectorKind::Twist => "twist".to_owned(),
            VectorKind::Wrench => "wrench".to_owned(),
            VectorKind::Joints(count) => format!("joints{count}"),
        }
    }

    fn read(word: &str) -> Option<VectorKind> {
        match word {
            "pose" => Some(VectorKind::Pose),
            "twist" => Some(VectorKind::Twist),
            "wrench" => Some(VectorKind::Wrench),
            _ => {
                let count: u8 = word.strip_prefix("joints")?.parse().ok()?;
                (1..=JointVector::MAX).contains(&usize::from(count)).then_some(VectorKind::Joints(count))
            }
        }
    }

    /// How many numbers a vector of this kind has.
    fn len(self) -> usize {
        match self {
            VectorKind::Joints(count) => usize::from(count),
            _ => 6,
        }
    }

    /// The symbols that a vector of this kind consists of.
    pub fn symbols(self) -> impl Iterator<Item = Symbol> {
        let next = move |place: usize| Symbol::Next(self, place as u8);
        std::iter::once(Symbol::Open(self)).chain((1..self.len()).map(next))
    }

    /// A whole vector; `None` if numbers are missing or not finite.
    fn token(self, numbers: &[f64]) -> Option<Token> {
        let six = || Vector6::new(<[f64; 6]>::try_from(numbers).ok()?).ok();
        let literal = match self {
            VectorKind::Pose => Literal::Pose(six()?),
            VectorKind::Twist => Literal::Twist(six()?),
            VectorKind::Wrench => Literal::Wrench(six()?),
            VectorKind::Joints(_) => Literal::Joints(JointVector::new(numbers).ok()?),
        };
        Some(Token::Head { head: Head::Literal(literal), args: 0 })
    }
}

impl OpenVector {
    /// What must follow.
    pub(crate) fn next(&self) -> Symbol {
        Symbol::Next(self.kind, self.numbers.len() as u8)
    }

    /// With another number.
    fn with(mut self, number: f64) -> Option<Joined> {
        self.numbers.push(number);
        if self.numbers.len() < self.kind.len() {
            return Some(Joined::Open(self));
        }
        self.kind.token(&self.numbers).map(Joined::Whole)
    }
}

impl Symbol {
    /// The symbols of a token, in order, with the numbers that they carry; zero for those that carry none.
    pub(super) fn of(token: Token) -> Vec<(Symbol, f64)> {
        let whole = vec![(Symbol::Token(token), 0.0)];
        let Token::Head { head: Head::Literal(literal), args: 0 } = token else { return whole };
        let (kind, values) = match literal {
            Literal::Pose(vector) => (VectorKind::Pose, vector.values().to_vec()),
            Literal::Twist(vector) => (VectorKind::Twist, vector.values().to_vec()),
            Literal::Wrench(vector) => (VectorKind::Wrench, vector.values().to_vec()),
            Literal::Joints(vector) => (VectorKind::Joints(vector.values().len() as u8), vector.values()),
            Literal::Natural(_) | Literal::Boolean(_) | Literal::Text(_) => return whole,
        };
        kind.symbols().zip(values).collect()
    }

    /// What it makes of what is open, with the number that it carries; nothing where it cannot stand.
    pub(crate) fn join(self, open: Option<OpenVector>, number: f64) -> Option<Joined> {
        match (self, open) {
            (Symbol::Token(token), None) => Some(Joined::Whole(token)),
            (Symbol::Open(kind), None) => OpenVector { kind, numbers: Vec::new() }.with(number),
            (Symbol::Next(..), Some(open)) if open.next() == self => open.with(number),
            _ => None,
        }
    }

    /// A token that begins with it, for a type checker: which numbers a vector has is no matter of types.
    pub(crate) fn example(self) -> Option<Token> {
        match self {
            Symbol::Token(token) => Some(token),
            Symbol::Open(kind) => kind.token(&vec![0.0; kind.len()]),
            Symbol::Next(..) => None,
        }
    }

    /// Whether it carries a number.
    pub fn carries_number(self) -> bool {
        matches!(self, Symbol::Open(_) | Symbol::Next(..))
    }

    /// Nothing for a literal with arguments, which no type allows.
    pub(super) fn spelling(self, store: &mut TermStore) -> Option<String> {
        let token = match self {
            Symbol::Token(token) => token,
            Symbol::Open(kind) => return Some(format!("{}[", kind.word())),
            Symbol::Next(kind, place) => return Some(format!("{},{place}", kind.word())),
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
        if let Some(kind) = spelling.strip_suffix('[').and_then(VectorKind::read) {
            return Some(Symbol::Open(kind));
        }
        if let Some((kind, place)) = spelling.split_once(',').and_then(|(word, at)| Some((VectorKind::read(word)?, at)))
        {
            return kind
                .symbols()
                .skip(1)
                .find(|symbol| matches!(symbol, Symbol::Next(_, at) if at.to_string() == place));
        }
        // A whole vector is several symbols.
        token(store, spelling)
            .map(Symbol::Token)
            .filter(|symbol| !matches!(symbol, Symbol::Token(token) if Symbol::of(*token).len() > 1))
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
        VectorKind::Twist.token(&numbers).unwrap()
    }

    #[test]
    fn vectors_are_taken_apart_and_joined_again() {
        taken_apart_and_joined(twist([0.5, -0.0, 1e-300, -2.5e17, 0.0, 0.1 + 0.2]), ["twist[", "twist,1"]);
        let joints = VectorKind::Joints(3).token(&[1.5, -2.0, 0.0]).unwrap();
        taken_apart_and_joined(joints, ["joints3[", "joints3,1"]);
        assert_eq!(VectorKind::Joints(3).token(&[1.5, f64::NAN, 0.0]), None);
    }

    fn taken_apart_and_joined(token: Token, first: [&str; 2]) {
        let mut store = TermStore::new();
        let (mut open, mut whole) = (None, Vec::new());
        for (symbol, number) in Symbol::of(token) {
            let spelling = symbol.spelling(&mut store).unwrap();
            let read = Symbol::read(&mut store, &spelling).unwrap();
            assert_eq!(read, symbol, "{spelling}");
            assert!(symbol.carries_number());
            match read.join(open.take(), number).unwrap() {
                Joined::Whole(token) => whole.push(token),
                Joined::Open(vector) => open = Some(vector),
            }
        }
        assert_eq!(whole, [token]);
        assert!(open.is_none());
        let spellings = [0, 1].map(|at| Symbol::of(token)[at].0.spelling(&mut store).unwrap());
        assert_eq!(spellings, first);
    }

    #[test]
    fn numbers_stand_in_vectors_alone_and_in_their_places() {
        let [(first, _), (second, _), (third, _), ..] = Symbol::of(twist([1.0; 6]))[..] else { panic!() };
        assert!(second.join(None, 1.0).is_none());
        let Some(Joined::Open(open)) = first.join(None, 1.0) else { panic!() };
        assert_eq!(open.next(), second);
        assert!(first.join(Some(open.clone()), 1.0).is_none());
        assert!(third.join(Some(open.clone()), 1.0).is_none());
        let pose = Symbol::Next(VectorKind::Pose, 1);
        assert!(pose.join(Some(open.clone()), 1.0).is_none());
        assert!(Symbol::Token(Token::Seq).join(Some(open), 0.0).is_none());
        assert_eq!(first.example(), Some(twist([0.0; 6])));
        assert_eq!(second.example(), None);
        for wrong in [
            ",",
            ",1",
            "twist,0",
            "twist,6",
            "twist,01",
            "twist,",
            "twist[0",
            "pose[1,2",
            "joints[",
            "joints0[",
            "joints9[",
            "joints3,3",
            "twist[0, 0, 0, 0, 0, 0]",
        ] {
            assert_eq!(Symbol::read(&mut TermStore::new(), wrong), None, "{wrong}");
        }
    }
}
