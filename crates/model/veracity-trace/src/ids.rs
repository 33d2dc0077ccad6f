//! Numbers that stand for things.
//!
//! Storages, views, events and executions are numbered by the tape, in the order in which they
//! appear, and a number is never given twice. Nodes, ports, operations and source lines are numbered
//! by the front; to the tape they are names.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A piece of memory that tensors show.
    StorageId;
    /// A way to look at a storage: every tensor with this storage and geometry is this view.
    ViewId;
    /// A recorded call. Numbers follow each other without gaps.
    EventId;
    /// One run through a node, from its first input mark to its last output mark.
    ExecutionId;
    /// A node, as the front numbers it.
    NodeId;
    /// A port, as the front numbers it.
    PortId;
    /// What was called, as the front numbers it.
    OpId;
    /// A line of the user's code, as the front numbers it.
    SiteId;
}
