"""Changes exported ONNX models before they are checked: `compile_graph(transform=[...])`.

Each rewrite is checked alone, on recorded inputs as well; one that is wrong is taken back. What
comes out is then held against the recorded values like any other export.
"""

from __future__ import annotations

from collections.abc import Sequence

from veracity.export.log import ExportLog
from veracity.export.models import Made
from veracity.transform import Pipeline, TransformResult

#: Recorded samples that rewrites are checked on.
_MOST_SAMPLES = 2


def transform_models(
    made: list[Made], passes: Sequence[str], log: ExportLog
) -> dict[str, TransformResult]:
    """Change every ONNX model that was exported here, in place; others stay as they are."""
    pipeline = Pipeline(passes)
    results: dict[str, TransformResult] = {}
    done: set[str] = set()
    for one in made:
        exported = one.exported
        # Models that were brought along belong to somebody else.
        if exported is None or exported.backend != "onnx" or one.node.export_with is None:
            continue
        # Generated nodes may share a file.
        if str(exported.path) in done:
            continue
        done.add(str(exported.path))
        result = pipeline.run(exported.path, inputs=_recorded(one))
        result.save(exported.path, log=False)
        results[one.node.name] = result
        log.note(f"{one.node.name}: {result}")
    return results


def _recorded(one: Made) -> list[dict[str, object]]:
    return [
        {
            name: sample.inputs[port.name].detach().cpu()
            for name, port in zip(one.input_names(), one.inputs, strict=True)
        }
        for sample in one.node.samples[:_MOST_SAMPLES]
    ]
