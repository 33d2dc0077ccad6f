//! A pass made of one function, for rewrites that no real pass would make.

use veracity_transform::{Class, Found, Pass, View};

/// A pass made of one function.
pub(crate) struct Rewriter {
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    pub(crate) find: fn(&View<'_>, &mut Found),
}

impl Pass for Rewriter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn class(&self) -> Class {
        self.class
    }

    fn about(&self) -> &'static str {
        "a rewrite of a test"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        (self.find)(view, found);
    }
}
