//! Which column of an action is what.

use clustering::Points;
use serde::{Deserialize, Serialize};

use crate::error::SkillError;

/// The columns of an action row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionLayout {
    /// How many columns there are.
    pub width: usize,
    /// The column of the gripper command, if there is one. All others are axes, in their order.
    pub gripper: Option<usize>,
    /// A command above this closes the gripper.
    pub closed_above: f32,
    /// The largest command on an axis, in either direction; without it there is no limit.
    pub limit: Option<f64>,
}

impl Default for ActionLayout {
    /// LIBERO's: three translations, three rotations, all in [−1, 1], and −1 to open, 1 to close.
    fn default() -> ActionLayout {
        ActionLayout { width: 7, gripper: Some(6), closed_above: 0.0, limit: Some(1.0) }
    }
}

impl ActionLayout {
    /// The columns that are no gripper command.
    pub fn axes(&self) -> Vec<usize> {
        (0..self.width).filter(|&column| Some(column) != self.gripper).collect()
    }

    /// Whether a row commands the gripper to close; nothing without a gripper.
    pub fn closed(&self, row: &[f32]) -> Option<bool> {
        self.gripper.and_then(|column| row.get(column)).map(|&command| command > self.closed_above)
    }

    /// Looks at whether these actions have the layout, and at the layout itself.
    pub(crate) fn check(&self, actions: Points<'_>) -> Result<(), SkillError> {
        self.validate()?;
        match actions.width() == self.width {
            true => Ok(()),
            false => Err(SkillError::OtherWidth { found: actions.width(), wanted: self.width }),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), SkillError> {
        if self.width == 0 {
            return Err(SkillError::BadSetting { name: "width", found: "0".to_owned(), wanted: "1 column or more" });
        }
        if let Some(column) = self.gripper.filter(|&column| column >= self.width) {
            let found = column.to_string();
            return Err(SkillError::BadSetting { name: "gripper", found, wanted: "a column of the actions, from 0" });
        }
        if let Some(limit) = self.limit.filter(|limit| !(limit.is_finite() && *limit > 0.0)) {
            let (found, wanted) = (limit.to_string(), "a finite number above 0, or none");
            return Err(SkillError::BadSetting { name: "limit", found, wanted });
        }
        Ok(())
    }
}
