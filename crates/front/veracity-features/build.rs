//! Does nothing: it is here because Cargo leaves out the build dependencies of a package without one.

fn main() {}
