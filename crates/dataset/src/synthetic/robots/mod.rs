//! The robots as data, one file each.

pub(super) mod aloha;
pub(super) mod humanoid;
pub(super) mod mobile;
pub(super) mod so101;
pub(super) mod state_only;
