//! Loops for the vector instructions of the machine at hand.

/// Defines a function whose loops are compiled for each set of vector instructions, of which the machine's best runs.
///
/// A closure handed to a dispatching function would not do: it is a function of its own, compiled once, for the least that
/// any machine has, unless the compiler happens to inline it.
///
/// Written `fn name<'a, S>(simd, …)`, the body has the instructions at hand as `simd: S`, for loops that are written with them.
macro_rules! vectorised {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident<'a>($($arg:ident: $type:ty),* $(,)?) -> $out:ty $body:block) => {
        vectorised! { $(#[$meta])* $visibility fn $name<'a, S>(_simd, $($arg: $type),*) -> $out $body }
    };
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident<'a, $level:ident>($simd:ident, $($arg:ident: $type:ty),* $(,)?) -> $out:ty $body:block
    ) => {
        $(#[$meta])*
        $visibility fn $name<'a>($($arg: $type),*) -> $out {
            struct Run<'a> {
                $($arg: $type,)*
                lifetime: std::marker::PhantomData<&'a ()>,
            }
            impl<'a> pulp::WithSimd for Run<'a> {
                type Output = $out;
                #[inline(always)]
                fn with_simd<$level: pulp::Simd>(self, $simd: $level) -> $out {
                    let Run { $($arg,)* .. } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Run { $($arg,)* lifetime: std::marker::PhantomData })
        }
    };
}
pub(crate) use vectorised;
