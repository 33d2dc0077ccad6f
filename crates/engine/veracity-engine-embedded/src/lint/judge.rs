//! Holds one node against its rule.

use tract_onnx::pb::{AttributeProto, NodeProto};
use veracity_tensor::DType;

use super::conditions::Use;
use super::rule::{Allowed, Gives, OnSizes, Role, Rule};
use super::table::{reason_without_rule, rule_of};
use super::value::Value;
use super::{conditions, is_default_domain};

/// What the node gives, or why it is refused. Left-out inputs are `None`.
pub(super) fn outputs_of(node: &NodeProto, inputs: &[Option<Value>]) -> Result<Vec<Value>, String> {
    if !is_default_domain(&node.domain) {
        return Err(format!("the domain {:?} is not supported", node.domain));
    }
    let rule = rule_of(&node.op_type).ok_or_else(|| reason_without_rule(&node.op_type))?;
    for attribute in &node.attribute {
        check_attribute(rule, attribute)?;
    }
    check_arity(rule, node)?;
    let context = Use { node, inputs };
    if inputs.contains(&Some(Value::Unknown)) {
        return Ok(vec![Value::Unknown; node.output.len()]);
    }
    check_roles(rule, inputs)?;
    let data = data_of(rule, inputs)?;
    if let Some(condition) = rule.condition {
        condition(&context)?;
    }
    (0..node.output.len()).map(|index| given(rule, index, data.as_ref(), &context)).collect()
}

fn check_attribute(rule: &Rule, attribute: &AttributeProto) -> Result<(), String> {
    let name = &attribute.name;
    let known = rule.attributes.iter().find(|(known, _)| known == name);
    let Some((_, allowed)) = known else {
        return Err(format!("its attribute {name:?} is not supported"));
    };
    let fits = match allowed {
        Allowed::Any => true,
        Allowed::Int(value) => attribute.i == *value,
        Allowed::One => attribute.f.to_bits() == 1f32.to_bits(),
        Allowed::Text(texts) => texts.iter().any(|text| text.as_bytes() == attribute.s),
    };
    if fits && attribute.ref_attr_name.is_empty() {
        return Ok(());
    }
    Err(format!("it is wrong unless its attribute {name:?} is {allowed}"))
}

fn check_arity(rule: &Rule, node: &NodeProto) -> Result<(), String> {
    if node.input.len() > rule.inputs.len() && !rule.any_inputs {
        return Err(format!("its input {} is not supported", rule.inputs.len()));
    }
    if node.output.len() > rule.outputs.len() && !rule.any_outputs {
        return Err(format!("its output {} is not supported", rule.outputs.len()));
    }
    let gap = |name: &String| name.is_empty();
    if node.input.iter().any(gap) && !rule.gaps {
        return Err("an input is left out".to_owned());
    }
    Ok(())
}

fn role_of(rule: &Rule, index: usize) -> Option<Role> {
    rule.inputs.get(index).or(rule.inputs.last()).copied()
}

fn check_roles(rule: &Rule, inputs: &[Option<Value>]) -> Result<(), String> {
    for (index, value) in inputs.iter().enumerate() {
        let (Some(expected), Some(dtype)) =
            (role_of(rule, index), value.as_ref().and_then(Value::dtype))
        else {
            continue;
        };
        let fits = match expected {
            Role::Data => rule.dtypes.contains(&dtype),
            Role::Integer => matches!(dtype, DType::I32 | DType::I64),
            Role::Condition => dtype == DType::Bool,
            Role::Other => true,
        };
        if !fits {
            return Err(format!("{dtype} is not supported for its input {index}"));
        }
    }
    Ok(())
}

/// What all data inputs are together.
fn data_of(rule: &Rule, inputs: &[Option<Value>]) -> Result<Option<Value>, String> {
    let is_data = |index: &usize| role_of(rule, *index) == Some(Role::Data);
    let data: Vec<&Value> =
        (0..inputs.len()).filter(is_data).filter_map(|index| inputs[index].as_ref()).collect();
    let Some(first) = data.first() else { return Ok(None) };
    if data.iter().any(|value| value.dtype() != first.dtype()) {
        return Err("its inputs differ in dtype".to_owned());
    }
    if !data.iter().any(|value| matches!(value, Value::Sizes)) {
        return Ok(Some(without_sizes(rule, &data)));
    }
    if rule.sizes == OnSizes::Refused {
        return Err("integers from `Shape`, `Size` or `Cast` to int64 are not supported".to_owned());
    }
    if data.iter().any(|value| matches!(value, Value::Plain(_))) {
        let cut = "integers from `Shape`, `Size` or `Cast` to int64 meet others of 64 bits, which \
                   would be cut to 32";
        return Err(cut.to_owned());
    }
    Ok(Some(Value::Sizes))
}

fn without_sizes(rule: &Rule, data: &[&Value]) -> Value {
    let mut elements = Vec::new();
    for value in data {
        match value {
            Value::Constant(part) if rule.sizes == OnSizes::Moved => elements.extend(&**part),
            _ => return value.dtype().map_or(Value::Unknown, Value::Plain),
        }
    }
    // Moved elements are the same ones, whatever their order.
    Value::of_integers(&elements)
}

fn given(
    rule: &Rule,
    index: usize,
    data: Option<&Value>,
    context: &Use<'_>,
) -> Result<Value, String> {
    let gives = rule.outputs.get(index).or(rule.outputs.last()).copied().unwrap_or(Gives::Data);
    match gives {
        Gives::Data => data.cloned().ok_or_else(|| "it has no input".to_owned()),
        Gives::Plain(dtype) => Ok(Value::Plain(dtype)),
        Gives::Sizes => Ok(Value::Sizes),
        Gives::Cast => conditions::cast_result(context),
        Gives::Attribute => conditions::constant_result(context),
    }
}
