"""Pages that are made of the code are not behind it, and files are what their schemas say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
import yaml
from support import api, schemas
from veracity import annotate

GENERATED = {"python": api, "files": schemas}
UPDATE = "VERACITY_UPDATE_DOCS=1 python -m pytest python/tests/test_reference.py"


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_what_the_code_makes(name: str) -> None:
    source = GENERATED[name]
    if os.environ.get("VERACITY_UPDATE_DOCS"):
        source.PAGE.write_text(source.page())
    found = source.PAGE.read_text() if source.PAGE.exists() else ""
    assert found == source.page(), f"stale: run `{UPDATE}` and commit the page"


def test_every_public_name_is_explained() -> None:
    assert api.undocumented() == []
    assert set(api.public_names("veracity")) == set(veracity.__all__) - {"__version__"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle with a feedback edge, names and a rate."""
    folder = tmp_path_factory.mktemp("bundle")
    memory = torch.ones(1, 2)
    with veracity.session("described", save_path=folder):
        for _ in range(3):
            x = annotate.input_tensors(
                "node",
                [
                    veracity.TensorSemantics("x", torch.randn(1, 2), element_names=["a", "b"]),
                    veracity.TensorSemantics("memory", memory, kind="state/vector3d"),
                ],
            )
            memory = x[0] * 0.5 + x[1]
            annotate.output_tensors("node", {"y": memory * 2, "z": memory}, export_with="jit")
    veracity.compile_graph(graph_configs=veracity.GraphConfigs(frequency=50))
    return folder / "described"


def test_a_bundle_is_what_its_schema_says(bundle: Path) -> None:
    schema = json.loads((schemas.SCHEMAS / "bundle-1.json").read_text())
    description = yaml.safe_load((bundle / "described.yaml").read_text())
    assert schemas.problems(description, schema, schema) == []
    assert description["pipeline"]["feedback_flow"] and description["veracity"]["proof"]
    assert _unknown(description, schema) == set()


def test_a_proof_is_what_its_schema_says(bundle: Path) -> None:
    schema = json.loads((schemas.SCHEMAS / "proof-1.json").read_text())
    proof = json.loads((bundle / "proof.json").read_text())
    assert schemas.problems(proof, schema, schema) == []


def test_a_schema_finds_what_is_wrong() -> None:
    schema = json.loads((schemas.SCHEMAS / "bundle-1.json").read_text())
    port: dict[str, Any] = {"name": "x", "dtype": "float31", "shape": [1.5]}
    node = {"inputs": [port], "outputs": [], "parameters": {}}
    wrong = {"models": {"a": node}, "pipeline": {"inputs": ["x"]}}
    found = " ".join(schemas.problems(wrong, schema, schema))
    for part in ("float31", "shape/0 is no integer", "lacks backend", "inputs is no object"):
        assert part in found, found
    assert "lacks system information" in found


def _unknown(description: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Keys of a bundle that the schema does not explain, where it is to explain all."""
    parts = {
        "": (description, schema["properties"]),
        "pipeline": (description["pipeline"], schema["$defs"]["Pipeline"]["properties"]),
        "veracity": (description["veracity"], schema["$defs"]["Veracity"]["properties"]),
    }
    return {f"{name}/{key}" for name, (part, known) in parts.items() for key in {*part} - {*known}}
