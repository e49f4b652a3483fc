//! The border to decoders that were not written by us: a panic in one of them is an error of ours.
//!
//! Decoders meet files that nobody checked. Ours to choose are careful ones, yet some give up on hostile bytes with a
//! panic, and a user should read of a damaged file then, not of a line in a crate.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; its panic becomes the reason why the input is bad. What the decoder was working on must not be used
/// afterwards.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                before(panic);
            }
        }));
    });
    let outer = INSIDE.replace(true);
    let done = catch_unwind(AssertUnwindSafe(decode));
    INSIDE.set(outer);
    done.map_err(|panic| match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(said), _) => format!("its decoder gave up ({said})"),
        (_, Some(said)) => format!("its decoder gave up ({said})"),
        _ => "its decoder gave up".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_reason() {
        assert_eq!(guarded(|| 3), Ok(3));
        let reason = guarded(|| -> u32 { panic!("index out of bounds") }).unwrap_err();
        assert_eq!(reason, "its decoder gave up (index out of bounds)");
        assert_eq!(guarded(|| 4), Ok(4));
    }
}
