//! Faults of a file, each kind once for each column.

use crate::fault::Fault;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    faults: Vec<Fault>,
    about: Vec<String>,
}

impl Notes {
    /// Adds a fault about something, such as a column. Where that is known already, its places are added to it.
    pub(super) fn add(&mut self, about: &str, mut fault: Fault) {
        let same = |(known, name): &(&mut Fault, &String)| known.kind() == fault.kind() && *name == about;
        match self.faults.iter_mut().zip(&self.about).find(same) {
            Some((known, _)) => {
                if let (Some(known), Some(more)) = (known.count_mut(), fault.count_mut()) {
                    *known = known.saturating_add(*more);
                }
            }
            None => {
                self.faults.push(fault);
                self.about.push(about.to_string());
            }
        }
    }

    /// Adds faults that stand for themselves.
    pub(super) fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.faults.push(fault);
            self.about.push(String::new());
        }
    }

    /// All of them, in the order of their first places.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }
}
