//! What a bundle declares: its ports, its settings, and the metadata of its models where those
//! say nothing.

use veracity_diag::{Diagnostic, Place, codes};

use super::lists::{self, Item, Lists};
use super::metadata::{Metadata, name_actions};
use super::quantity::Quantity;
use super::{Contract, Joints, Port, Stated};
use crate::{AxisNames, Direction, Map, Places, PortRef, PortSpec, Spec};

impl Contract {
    /// What a bundle says about the inputs and outputs of its pipeline. `metadata` is what its
    /// models say, each with its file; it counts where the YAML says nothing. What contradicts
    /// itself is told and left out.
    pub fn of_bundle(
        spec: &Spec,
        places: &Places,
        metadata: &[(String, Vec<(String, String)>)],
    ) -> (Self, Vec<Diagnostic>) {
        let mut problems = Vec::new();
        let mut contract = Self { place: places.file(), lists_all_ports: true, ..Self::default() };
        contract.rate_hz = spec.configs.frequency.map(|hertz| Stated::new(hertz, places.file()));
        let sides = [
            (Direction::Input, &spec.pipeline_inputs),
            (Direction::Output, &spec.pipeline_outputs),
        ];
        for (direction, keys) in sides {
            for key in keys {
                let Some(port) = spec.port(key, direction) else { continue };
                let place = places.port(key, direction);
                contract.joints.extend(port_joints(key, port, &place, &mut problems));
                contract.ports.push(port_from(key, direction, port, place));
            }
        }
        read_settings(&spec.configs.extra, &places.file(), &mut contract, &mut problems);
        for (file, entries) in metadata {
            Metadata { file, entries }.complete(&mut contract, &mut problems);
        }
        name_actions(&mut contract.ports, &contract.joints);
        (contract, problems)
    }
}

fn read_settings(
    settings: &Map,
    place: &Place,
    contract: &mut Contract,
    problems: &mut Vec<Diagnostic>,
) {
    let find = |key: &str| lists::from_value(settings.get(key)?);
    let lists = Lists { subject: "the joints".to_owned(), place: place.clone(), find: &find };
    contract.joints.extend(lists.joints(problems));
    contract.observation_names = lists.names("observation_names", problems);
    contract.command_names = lists.names("command_names", problems);
}

fn port_from(key: &PortRef, direction: Direction, port: &PortSpec, place: Place) -> Port {
    let said = |what: &str| port.extra.get(what).and_then(lists::from_value);
    let units = said("units").or_else(|| said("unit"));
    Port {
        shape: Some(Stated::new(port.shape.dims().to_vec(), place.clone())),
        dtype: Some(Stated::new(port.dtype, place.clone())),
        kind: port.kind.clone().map(|kind| Stated::new(kind, place.clone())),
        element_names: port.element_names.clone().map(|names| Stated::new(names, place.clone())),
        units: units
            .and_then(|units| lists::texts(&units))
            .map(|units| Stated::new(units, place.clone())),
        temporal_period_ms: port
            .temporal_period_ms
            .map(|period| Stated::new(period, place.clone())),
        ..Port::new(key.to_string(), direction, place)
    }
}

/// Gains and the like that stand beside the element names of a port.
fn port_joints(
    key: &PortRef,
    port: &PortSpec,
    place: &Place,
    problems: &mut Vec<Diagnostic>,
) -> Option<Joints> {
    let names = port.element_names.as_ref().and_then(|axes| {
        let mut named = axes.iter().filter_map(|axis| match axis {
            AxisNames::Named(names) => Some(names),
            AxisNames::Unnamed | AxisNames::Temporal => None,
        });
        named.next().filter(|_| named.next().is_none())
    })?;
    let find = |quantity: Quantity| -> Option<(&str, Vec<Item>)> {
        let keys = [quantity.name()].into_iter().chain(quantity.keys()).collect::<Vec<_>>();
        keys.into_iter().find_map(|key| Some((key, lists::from_value(port.extra.get(key)?)?)))
    };
    let mut quantities = Vec::new();
    for quantity in Quantity::all() {
        let Some((name, items)) = find(quantity) else { continue };
        match lists::numbers(&items, names.len()) {
            Ok(numbers) => quantities.push((quantity, Stated::new(numbers, place.clone()))),
            Err(why) => {
                let message = format!("`{name}` of port \"{key}\" {why}; it is not compared");
                let problem = Diagnostic::warning(codes::CONTRACT_INVALID, message);
                problems.push(problem.at(place.clone()));
            }
        }
    }
    (!quantities.is_empty()).then(|| Joints {
        subject: key.to_string(),
        names: Stated::new(names.clone(), place.clone()),
        has_names: true,
        of_port: true,
        quantities,
    })
}
