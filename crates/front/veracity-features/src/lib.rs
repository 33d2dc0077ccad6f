//! Holds no code: its manifest makes both fronts and all tests use one build of the dependencies.
