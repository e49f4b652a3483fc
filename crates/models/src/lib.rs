//! The learned parts: frozen encoder, world model, kernel, amortizer, and how they are trained.
