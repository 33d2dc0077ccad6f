//! What a rewrite replaced and what replaced it, for those who look at it.

use veracity_onnx::Node;
use veracity_results::{ChangedNode, NodeRecord, RewriteRecord};

use crate::base64;
use crate::fields::node_record;

/// The nodes of a rewrite before and after, those that stayed and changed on both sides. A changed
/// node that cannot be read is left out: this is for show.
pub fn sides(record: &RewriteRecord) -> (Vec<NodeRecord>, Vec<NodeRecord>) {
    let (mut before, mut after) = (record.removed.clone(), record.added.clone());
    for changed in &record.changed {
        let node = base64::decode(&changed.proto).and_then(|bytes| Node::from_bytes(&bytes).ok());
        let Some(now) = node.map(|node| node_record(changed.id, &node)) else { continue };
        before.push(as_it_was(changed, &now));
        after.push(now);
    }
    before.sort_by_key(|node| node.id);
    after.sort_by_key(|node| node.id);
    (before, after)
}

fn as_it_was(changed: &ChangedNode, now: &NodeRecord) -> NodeRecord {
    let operator = changed.fields.iter().find(|field| field.field == "operator");
    let op_type = operator.and_then(|field| field.before.clone());
    NodeRecord {
        op_type: op_type.unwrap_or_else(|| now.op_type.clone()),
        inputs: changed.inputs.clone(),
        outputs: changed.outputs.clone(),
        ..now.clone()
    }
}
