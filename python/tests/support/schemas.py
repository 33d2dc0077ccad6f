"""The page about files, made of the JSON Schemas in `docs/schema`, and a check against them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from support.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "files.md"
SCHEMAS = ROOT / "docs" / "schema"

_INTRODUCTION = """# Files

What Veracity reads and writes, key by key. Each format has a JSON Schema in `docs/schema`, for
editors and programs. The number in its name is the major version: minor versions add keys, which
readers ignore; another major version is refused. Keys in **bold** are always there. This page is
made of the schemas:
`VERACITY_UPDATE_DOCS=1 python -m pytest python/tests/test_reference.py` writes it.
"""

#: In the order of the page: the file, its heading, and what else is to be said.
_FILES = {
    "bundle-1.json": ("The bundle", "YAML. What it is: [the bundle](../concepts/bundle.md)."),
    "robot-1.json": (
        "The robot file",
        "YAML. In use: [a bundle and a robot](../robot-contract.md).",
    ),
    "proof-1.json": (
        "Proofs",
        "`proof.json`, `veracity check --output FILE`. In use: [proofs](../proof.md).",
    ),
    "drift-1.json": (
        "Drift reports",
        "`veracity drift --save FILE`, `veracity parity --save FILE`. "
        "In use: [two models](../drift.md).",
    ),
    "rewrites-1.json": (
        "Logs of rewrites",
        "`OUT.rewrites.json`. In use: [the history of a transformed model](../rewrites.md).",
    ),
    "model-diff-1.json": (
        "Differences of models",
        "`veracity diff A.onnx B.onnx --format json`. "
        "In use: [comparing two models](../rewrites.md#comparing-two-models).",
    ),
}

_KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def page() -> str:
    """Return the page."""
    assert set(_FILES) == {path.name for path in SCHEMAS.glob("*.json")}, "a schema has no place"
    return _INTRODUCTION + "".join(_chapter(name, *said) for name, said in _FILES.items())


def _chapter(name: str, heading: str, said: str) -> str:
    schema = json.loads((SCHEMAS / name).read_text())
    about = _plain(schema["description"])
    text = f"\n## {heading}\n\n{about} {said} Schema: [`{name}`](../schema/{name}).\n"
    text += _table(schema)
    for title, part in schema.get("$defs", {}).items():
        text += f"\n**{title}**: {_plain(part.get('description', ''))}\n" + _table(part)
        text += "".join(_choices(part))
    return text


def _table(schema: dict[str, Any]) -> str:
    properties = schema.get("properties")
    if not properties:
        return ""
    required = set(schema.get("required", ()))
    rows = "".join(
        f"| {f'**`{key}`**' if key in required else f'`{key}`'} | {_type(part)} "
        f"| {_plain(part.get('description', ''))} |\n"
        for key, part in properties.items()
    )
    return f"\n| key | type | what it says |\n|---|---|---|\n{rows}"


def _choices(schema: dict[str, Any]) -> Iterator[str]:
    """Return the values that an enumeration may have."""
    for one in schema.get("oneOf", ()):
        if "const" in one:
            yield f"\n- `{one['const']}`: {_plain(one.get('description', ''))}"
    if "oneOf" in schema:
        yield "\n"
    if "enum" in schema and "properties" not in schema:
        yield "\nOne of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".\n"


def _type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "anything"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for joined in ("anyOf", "oneOf"):
        if joined in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[joined]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"mapping to {_type(schema['additionalProperties'])}"
    return str(kind)


def _plain(text: str) -> str:
    """Take out line breaks, and links to Rust items, which lead nowhere here."""
    text = re.sub(r"\[(`[^`]*`)\](?:\([^)]*\))?", r"\1", text)
    return " ".join(text.split()).replace("|", "\\|")


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "") -> list[str]:
    """Say where a value is not what a schema says; enough of JSON Schema for ours."""
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    found = []
    kinds = schema.get("type", list(_KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, _KINDS[kind]) for kind in kinds):
        found.append(f"{at} is no {' or '.join(kinds)}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at} is {value!r}")
    if isinstance(value, dict):
        found += [f"{at} lacks {key}" for key in schema.get("required", ()) if key not in value]
        for key, part in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(inner, dict):
                found += problems(part, inner, root, f"{at}/{key}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, part in enumerate(value):
            found += problems(part, schema["items"], root, f"{at}/{number}")
    return found
