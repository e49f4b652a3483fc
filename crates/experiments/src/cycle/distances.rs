//! Targets as an emitter writes them: as distances from where the robot is.
//!
//! A program names positions. What an image shows is where things are as seen from the hand, so an emitter that writes
//! distances learns from every frame of a reach that the same thing is nearer now, and one that writes positions has to learn
//! for each frame how to add the state. Only poses that can belong to one group alone are converted, and only where the state
//! says where that group is; all other numbers stay as they are.

use models::vocabulary::{BoundVocabulary, Piece, VectorKind};
use skills::{ActionLayout, Position, Space};

use super::plan::is_measured;

/// Which numbers are distances.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distances {
    /// The symbol of each number, with the group and the dimension of the position that it is a distance from.
    of: Vec<(u32, usize, usize)>,
}

impl Distances {
    /// For programs of a robot.
    pub(crate) fn new(vocabulary: &BoundVocabulary, layout: &ActionLayout) -> Distances {
        let poses: Vec<usize> =
            (0..layout.groups.len()).filter(|at| matches!(layout.groups[*at].space, Space::Pose(_))).collect();
        let [group] = poses[..] else { return Distances::default() };
        if !is_measured(&layout.groups[group]) {
            return Distances::default();
        }
        let symbols = VectorKind::Pose.symbols().zip(0..layout.groups[group].dims());
        Distances { of: symbols.map(|(symbol, dim)| (vocabulary.id(symbol), group, dim)).collect() }
    }

    /// Positions become distances.
    pub(crate) fn to_distances(&self, pieces: &mut [Piece], position: &Position) {
        self.shift(pieces, position, |number, now| number - now);
    }

    /// Distances become positions, with five significant digits.
    pub(crate) fn to_positions(&self, pieces: &mut [Piece], position: &Position) {
        self.shift(pieces, position, |number, now| format!("{:.4e}", number + now).parse().unwrap_or(number + now));
    }

    fn shift(&self, pieces: &mut [Piece], position: &Position, shifted: impl Fn(f64, f64) -> f64) {
        for piece in pieces {
            let Some((_, group, dim)) = self.of.iter().find(|(id, ..)| *id == piece.id) else { continue };
            if let Some(now) = position.get(*group).and_then(|places| places.get(*dim)) {
                piece.number = shifted(piece.number, *now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use language::{Signature, TermStore, read};
    use models::vocabulary::Vocabulary;
    use skills::{Control, Group};

    use super::*;

    fn group(space: Space, states: Vec<usize>) -> Group {
        Group {
            name: "arm".to_owned(),
            space,
            control: Control::Relative,
            columns: (0..6).collect(),
            names: Vec::new(),
            states,
            limits: vec![[-1.0, 1.0]; 6],
            fast: vec![1.0; 6],
        }
    }

    fn layout(groups: Vec<Group>) -> ActionLayout {
        ActionLayout { width: 6, fps: 20.0, groups, grippers: Vec::new() }
    }

    #[test]
    fn poses_become_distances_and_positions_again_and_other_numbers_stay() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let texts = ["goto pose[1, 5, 0.25, 0, 0, -0.5]", "move twist[1, 2, 3, 4, 5, 6]"];
        let terms = texts.map(|text| read(&mut store, &signature, text, None).unwrap().term);
        let mut vocabulary = Vocabulary::new();
        vocabulary.extend_with_signature(&store, &signature);
        vocabulary.extend_with_terms(&mut store, &terms);
        let bound = vocabulary.bind(&mut store).unwrap();
        let position = vec![vec![0.5, 1.0, 0.125, 0.0, 0.0, 0.5]];
        let pieces = bound.encode(&store, &terms).pieces;

        let one = Distances::new(&bound, &layout(vec![group(Space::Pose(None), (0..6).collect())]));
        let mut written = pieces.clone();
        one.to_distances(&mut written, &position);
        let numbers = |pieces: &[Piece]| pieces.iter().map(|piece| piece.number).collect::<Vec<f64>>();
        assert_eq!(numbers(&written)[1..7], [0.5, 4.0, 0.125, 0.0, 0.0, -1.0]);
        assert_eq!(written[7..], pieces[7..], "a twist is a distance already");
        one.to_positions(&mut written, &position);
        assert_eq!(written, pieces);

        let unseen = layout(vec![group(Space::Pose(None), Vec::new())]);
        let two = layout(vec![group(Space::Pose(None), (0..6).collect()), group(Space::Pose(None), (0..6).collect())]);
        for layout in [unseen, two] {
            let mut written = pieces.clone();
            Distances::new(&bound, &layout).to_distances(&mut written, &position);
            assert_eq!(written, pieces, "it is not known which position a pose is a distance from");
        }
    }
}
