//! What is shown.

/// Pages side by side, with what is to be said about all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The title of the window.
    pub title: String,
    /// The pages, from left to right.
    pub frames: Vec<Frame>,
    /// What differs between the pages: HTML that stands above them.
    pub comparison: Option<String>,
}

/// One page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// What it is a page of.
    pub label: String,
    /// The page, a whole HTML file.
    pub page: String,
    /// What must be known before the page is believed.
    pub notice: Option<String>,
}
