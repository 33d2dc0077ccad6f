//! What the metadata of an ONNX model declares, in the keys that mjlab and its kin write.

use veracity_diag::{Diagnostic, Place};

use super::lists::{self, Item, Lists};
use super::{Contract, Joints, Port, Stated};
use crate::{AxisNames, Direction};

/// Outputs that these exporters give the joints' targets by.
const ACTIONS: [&str; 2] = ["actions", "action"];

/// Keys and values of a model, and the file that they are in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metadata<'m> {
    pub(super) file: &'m str,
    pub(super) entries: &'m [(String, String)],
}

impl Metadata<'_> {
    pub(super) fn place(&self) -> Place {
        Place::file(self.file)
    }

    fn find(&self, key: &str) -> Option<Vec<Item>> {
        let entry = self.entries.iter().find(|(name, _)| name == key);
        entry.map(|(_, value)| lists::from_text(value))
    }

    /// Fills in what a contract does not say by itself.
    pub(super) fn complete(&self, contract: &mut Contract, problems: &mut Vec<Diagnostic>) {
        let find = |key: &str| self.find(key);
        let lists = Lists { subject: "the joints".to_owned(), place: self.place(), find: &find };
        if contract.joints.is_empty() {
            contract.joints.extend(lists.joints(problems));
        }
        for (slot, key) in [
            (&mut contract.observation_names, "observation_names"),
            (&mut contract.command_names, "command_names"),
        ] {
            if slot.is_none() {
                *slot = lists.names(key, problems);
            }
        }
    }
}

/// Names the elements of an output that can only be the joints' targets, unless it says itself.
pub(super) fn name_actions(ports: &mut [Port], joints: &[Joints]) {
    let [joints] = joints else { return };
    let count = joints.names.value.len();
    for port in ports.iter_mut().filter(|port| port.direction == Direction::Output) {
        let name = port.key.rsplit('/').next().unwrap_or_default();
        let fits = port.shape.as_ref().is_some_and(|shape| shape.value.last() == Some(&count));
        if ACTIONS.contains(&name) && fits && port.element_names.is_none() {
            let names = vec![AxisNames::Named(joints.names.value.clone())];
            port.element_names = Some(Stated::new(names, joints.names.place.clone()));
        }
    }
}

impl Contract {
    /// What the metadata of an ONNX model says: `joint_names`, `joint_stiffness`, `joint_damping`,
    /// `default_joint_pos`, `action_scale`, `observation_names`, `command_names` and so on, as
    /// lists with commas. `ports` are those of the model. What contradicts itself is told and
    /// left out.
    pub fn from_metadata(
        file: &str,
        entries: &[(String, String)],
        ports: Vec<Port>,
    ) -> (Self, Vec<Diagnostic>) {
        let metadata = Metadata { file, entries };
        let mut contract = Self { place: metadata.place(), ports, ..Self::default() };
        let mut problems = Vec::new();
        metadata.complete(&mut contract, &mut problems);
        name_actions(&mut contract.ports, &contract.joints);
        (contract, problems)
    }
}
