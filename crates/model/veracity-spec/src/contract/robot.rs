//! Reads a robot file: what a robot declares, in YAML.

use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes, nearest};

use super::deploy;
use super::order::repeated;
use super::quantity::{Number, Quantity};
use super::{Contract, Joints, Port, Stated};
use crate::check::{fields, ports};
use crate::yaml::{Kind, Node as YamlNode, Problems, Source, load};
use crate::{AxisNames, Direction};

/// Keys at the top of a robot file.
pub(super) const TOP: [&str; 7] =
    ["robot", "rate_hz", "joints", "observation_names", "command_names", "inputs", "outputs"];

/// Keys of a port.
pub(super) const PORT: [&str; 6] =
    ["kind", "element_names", "units", "shape", "dtype", "temporal_period_ms"];

/// Most joints of a robot: what is said of them may be said by name, and names are looked up.
pub(super) const MAX_JOINTS: usize = 1024;

/// What stands for the names of the joints.
pub(super) const JOINTS: &str = "joints";

impl Contract {
    /// Reads a robot file.
    pub fn open_robot_yaml(path: &Path) -> Result<Self> {
        Self::from_robot_yaml(&path.display().to_string(), crate::open::read(path)?)
    }

    /// Reads the bytes of a robot file, which messages call `name`, or of a `deploy.yaml` as Unitree's
    /// training writes it. Every problem of it is told at once.
    pub fn from_robot_yaml(name: &str, yaml: Vec<u8>) -> Result<Self> {
        let source = Source::within_limits(name, yaml)?;
        let mut problems = Problems::new(&source);
        let mut contract = Self { place: source.file(), lists_all_ports: true, ..Self::default() };
        let root = load(&source, &mut problems);
        if let Some(root) = root.as_ref().filter(|root| deploy::is_deploy(root)) {
            deploy::read(root, &source, &mut contract, &mut problems);
        } else if let Some(root) = root {
            Reader { source: &source, joints: None }.read(&root, &mut contract, &mut problems);
        }
        contract.remarks = problems.finish()?;
        Ok(contract)
    }
}

struct Reader<'s> {
    source: &'s Source,
    joints: Option<Vec<String>>,
}

impl Reader<'_> {
    fn place(&self, node: &YamlNode) -> Place {
        self.source.place(node.span)
    }

    fn stated<T>(&self, value: T, node: &YamlNode) -> Stated<T> {
        Stated::new(value, self.place(node))
    }

    fn read(&mut self, root: &YamlNode, contract: &mut Contract, problems: &mut Problems<'_>) {
        let Some(pairs) = fields::mapping(root, "a robot file", problems) else { return };
        refuse_unknown(pairs, &TOP, "a robot file", problems);
        if let Some(name) = given(root, "robot") {
            fields::text(name, "`robot`", problems);
        }
        contract.rate_hz = given(root, "rate_hz")
            .and_then(|node| Some(self.stated(positive(node, "rate_hz", problems)?, node)));
        if let Some(node) = given(root, "joints") {
            contract.joints.extend(self.read_joints(node, problems));
        }
        self.joints = contract.joints.first().map(|joints| joints.names.value.clone());
        let names = |key: &str, problems: &mut Problems<'_>| {
            let node = given(root, key)?;
            Some(self.stated(names_from(node, &format!("`{key}`"), problems)?, node))
        };
        contract.observation_names = names("observation_names", problems);
        contract.command_names = names("command_names", problems);
        for (key, direction) in [("inputs", Direction::Input), ("outputs", Direction::Output)] {
            let Some(node) = given(root, key) else { continue };
            let Some(pairs) = fields::mapping(node, &format!("`{key}`"), problems) else {
                continue;
            };
            for (name, value) in pairs {
                contract.ports.extend(self.read_port(name, value, direction, problems));
            }
        }
    }

    fn read_joints(&self, node: &YamlNode, problems: &mut Problems<'_>) -> Option<Joints> {
        let pairs = fields::mapping(node, "`joints`", problems)?;
        let known: Vec<&str> =
            std::iter::once("names").chain(Quantity::all().map(Quantity::name)).collect();
        refuse_unknown(pairs, &known, "`joints`", problems);
        let list = fields::required(node, "names", "`joints`", node.span, problems)?;
        let names = names_from(list, "`names` of `joints`", problems)?;
        if names.len() > MAX_JOINTS {
            invalid(list, &format!("a robot of more than {MAX_JOINTS} joints"), problems);
            return None;
        }
        let mut quantities = Vec::new();
        for quantity in Quantity::all() {
            let Some(value) = given(node, quantity.name()) else { continue };
            if let Some(numbers) = numbers_from(value, quantity, &names, problems) {
                quantities.push((quantity, self.stated(numbers, value)));
            }
        }
        Some(Joints {
            subject: "the joints".to_owned(),
            names: self.stated(names, list),
            has_names: true,
            of_port: false,
            quantities,
        })
    }

    fn read_port(
        &self,
        name: &YamlNode,
        value: &YamlNode,
        direction: Direction,
        problems: &mut Problems<'_>,
    ) -> Option<Port> {
        let key = fields::text(name, "the name of a port", problems)?;
        let mut port = Port::new(key, direction, self.place(name));
        if value.is_null() {
            return Some(port);
        }
        let what = format!("{direction} {key:?}");
        let pairs = fields::mapping(value, &what, problems)?;
        refuse_unknown(pairs, &PORT, &what, problems);
        port.kind = given(value, "kind").and_then(|node| {
            Some(self.stated(fields::text(node, "`kind`", problems)?.to_owned(), node))
        });
        port.dtype = given(value, "dtype")
            .and_then(|node| Some(self.stated(ports::read_dtype(node, problems)?, node)));
        port.shape = given(value, "shape").and_then(|node| {
            let size = port.dtype.as_ref().map_or(1, |dtype| dtype.value.size());
            let shape = ports::read_shape(node, size, problems)?;
            Some(self.stated(shape.dims().to_vec(), node))
        });
        port.temporal_period_ms = given(value, "temporal_period_ms").and_then(|node| {
            Some(self.stated(positive(node, "temporal_period_ms", problems)?, node))
        });
        port.element_names = given(value, "element_names")
            .and_then(|node| Some(self.stated(self.element_names(node, problems)?, node)));
        port.units = given(value, "units")
            .and_then(|node| Some(self.stated(units_from(node, problems)?, node)));
        Some(port)
    }

    /// Names along the last axis, names for each axis, or the word for the joints.
    fn element_names(
        &self,
        node: &YamlNode,
        problems: &mut Problems<'_>,
    ) -> Option<Vec<AxisNames>> {
        if node.text() == Some(JOINTS) {
            if self.joints.is_none() {
                invalid(node, "`joints` is not declared in this file", problems);
            }
            return self.joints.clone().map(|names| vec![AxisNames::Named(names)]);
        }
        let is_flat = match &*node.kind {
            Kind::Sequence(items) => items.iter().all(|item| item.scalar().is_some()),
            _ => true,
        };
        let only_axes = |items: &[YamlNode]| {
            items.iter().all(|item| item.is_null() || item.text() == Some(AxisNames::TEMPORAL))
        };
        if is_flat && !matches!(&*node.kind, Kind::Sequence(items) if only_axes(items)) {
            let names = names_from(node, "`element_names`", problems)?;
            return Some(vec![AxisNames::Named(names)]);
        }
        let axes = ports::read_element_names(node);
        let repeats = |axis: &AxisNames| match axis {
            AxisNames::Named(names) => repeated(names).cloned(),
            AxisNames::Unnamed | AxisNames::Temporal => None,
        };
        match axes {
            None => invalid(node, "give a list of names, or one for each axis", problems),
            Some(axes) => match axes.iter().find_map(repeats) {
                Some(name) => invalid(node, &format!("{name:?} stands twice"), problems),
                None => return Some(axes),
            },
        }
        None
    }
}

/// The value of a key that says something.
pub(super) fn given<'n>(node: &'n YamlNode, key: &str) -> Option<&'n YamlNode> {
    node.get(key).filter(|value| !value.is_null())
}

/// Notes every key that is not known, with the nearest that is.
pub(crate) fn refuse_unknown(
    pairs: &[(YamlNode, YamlNode)],
    known: &[&str],
    what: &str,
    problems: &mut Problems<'_>,
) {
    for (key, _) in pairs {
        let name = &key.scalar().expect("the loader takes only scalar keys").text;
        if known.contains(&name.as_str()) {
            continue;
        }
        let message = format!("{what} has no key {name:?}");
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", known.join(", ")),
        };
        problems.add(key.span, Diagnostic::error(codes::YAML_UNKNOWN_KEY, message).hint(hint));
    }
}

pub(super) fn invalid(node: &YamlNode, message: &str, problems: &mut Problems<'_>) {
    problems.add(node.span, Diagnostic::error(codes::CONTRACT_INVALID, message));
}

pub(super) fn positive(node: &YamlNode, key: &str, problems: &mut Problems<'_>) -> Option<f64> {
    let value = fields::number(node, &format!("`{key}`"), problems)?;
    if value > 0.0 && value.is_finite() {
        return Some(value);
    }
    let message = format!("`{key}` must be more than 0, not {value}");
    problems.add(node.span, Diagnostic::error(codes::FREQUENCY_INVALID, message));
    None
}

/// A list of names, each once.
fn names_from(node: &YamlNode, what: &str, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let items = fields::sequence(node, what, problems)?;
    let mut seen = std::collections::HashSet::new();
    let mut names = Vec::with_capacity(items.len());
    let mut sound = true;
    for item in items {
        let Some(name) = fields::text(item, "a name", problems) else {
            sound = false;
            continue;
        };
        if !seen.insert(name) {
            invalid(item, &format!("{what}: {name:?} stands twice"), problems);
            sound = false;
        }
        names.push(name.to_owned());
    }
    sound.then_some(names)
}

fn units_from(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let Kind::Sequence(items) = &*node.kind else {
        return Some(vec![fields::text(node, "`units`", problems)?.to_owned()]);
    };
    let texts: Vec<Option<&str>> =
        items.iter().map(|item| fields::text(item, "a unit", problems)).collect();
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

/// A number for all joints, a list in their order, or numbers by name.
fn numbers_from(
    node: &YamlNode,
    quantity: Quantity,
    names: &[String],
    problems: &mut Problems<'_>,
) -> Option<Vec<Option<Number>>> {
    let what = format!("`{quantity}`");
    match &*node.kind {
        Kind::Scalar(_) => {
            finite(node, &what, problems).map(|number| vec![Some(number); names.len()])
        }
        Kind::Sequence(items) if items.len() != names.len() => {
            let message = format!("{what} has {} numbers for {} joints", items.len(), names.len());
            invalid(node, &message, problems);
            None
        }
        Kind::Sequence(items) => {
            let numbers: Vec<Option<Number>> =
                items.iter().map(|item| finite(item, &what, problems)).collect();
            numbers.iter().all(Option::is_some).then_some(numbers)
        }
        Kind::Mapping(pairs) => {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            refuse_unknown(pairs, &known, &what, problems);
            Some(names.iter().map(|name| finite(node.get(name)?, &what, problems)).collect())
        }
    }
}

fn finite(node: &YamlNode, what: &str, problems: &mut Problems<'_>) -> Option<Number> {
    let value = fields::number(node, what, problems)?;
    if !value.is_finite() {
        invalid(node, &format!("{what} must be finite, not {value}"), problems);
        return None;
    }
    Some(Number::exact(value))
}
