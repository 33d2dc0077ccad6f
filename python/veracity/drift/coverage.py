"""Says of every tensor of a program what became of it in the export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx, nn

from veracity.drift.program import tensor_nodes


def program_values(exported: Any, verdicts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return one entry a tensor: its own verdict, or the compared values that it went into.

    Args:
        exported: The program.
        verdicts: Verdicts of the rows, by names of the program.
    """
    into = _served(exported, verdicts)
    return [_entry(node, verdicts, into) for node in tensor_nodes(exported)]


def leaves(model: nn.Module) -> list[str]:
    """Return the paths of the modules that have no modules inside, but for the model itself."""
    named = model.named_modules(remove_duplicate=False)
    return [path for path, module in named if path and not any(True for _ in module.children())]


def _entry(
    node: fx.Node, verdicts: Mapping[str, str], into: Mapping[fx.Node, list[str]]
) -> dict[str, Any]:
    found: dict[str, Any] = {"name": node.name, "target": str(node.target)}
    if node.name in verdicts:
        return found | {"status": verdicts[node.name]}
    if into[node]:
        return found | {"status": "folded", "into": into[node]}
    return found | {"status": "not_mapped", "reason": "no output depends on it"}


def _served(exported: Any, verdicts: Mapping[str, str]) -> dict[fx.Node, list[str]]:
    """Find the nearest compared values behind each node; nodes are seen backwards."""
    served: dict[fx.Node, list[str]] = {}
    for node in reversed(exported.graph.nodes):
        found: dict[str, None] = {}
        for user in [*node.users, *_readers(node, served)]:
            found.update(dict.fromkeys([user.name] if user.name in verdicts else served[user]))
        served[node] = list(found)
    return served


def _readers(node: fx.Node, behind: Mapping[fx.Node, list[str]]) -> list[fx.Node]:
    """Return the nodes behind one that writes in place, which read what it wrote by another name.

    Views are followed to what they show; `behind` has the nodes that come later.
    """
    found: list[fx.Node] = []
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return found
    while _shows_first_argument(node):
        node = node.args[0]  # type: ignore[assignment]  # just asked
        found += [user for user in node.users if user in behind]
    return found


def _shows_first_argument(node: fx.Node) -> bool:
    """Whether a node gives its first argument, or a view of it."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.arguments or not node.args:
        return False
    return isinstance(node.args[0], fx.Node) and schema.arguments[0].alias_info is not None
