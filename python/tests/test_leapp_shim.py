"""`install_as_leapp()`: code that imports LEAPP runs on Veracity, and only when it was called."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(arguments or ("-c", textwrap.dedent(code)))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def output(code: str, *arguments: str) -> str:
    done = run(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


#: What third-party code imports, and what must hold for it.
STATEMENTS = [
    "from leapp import InputKindEnum, OutputKindEnum, TensorSemantics, TemporalAxis",
    "from leapp import GraphConfigs, FunctionPatch, InferenceManager",
    "from leapp import annotate, start, stop, compile_graph",
    "from leapp.leapp import annotate, start, stop, compile_graph",
    "from leapp.utils.tensor_description import TensorSemantics, TEMPORAL_AXIS_SENTINEL",
    "from leapp.utils.tensor_description import TemporalAxis, GraphConfigs",
    "from leapp.utils.enums import InputKindEnum, OutputKindEnum",
    "from leapp.inference_manager import InferenceManager",
    "from leapp.export_manager import ExportManager",
    "from leapp import ExportManager; assert ExportManager() is ExportManager()",
    "from leapp.leapp_graph.datatypes.patching import FunctionPatch",
    "import leapp.utils.tensor_description as t; t.TensorSemantics",
    "import leapp; assert (leapp.__version__, leapp.__config_version__) == ('0.7.2', '1.3')",
    "from leapp import *; TensorSemantics, annotate",
]


INSTALLED = pytest.mark.parametrize(
    "install", ["", "import veracity.leapp; veracity.leapp.install_as_leapp()"]
)


@INSTALLED
def test_leapp_and_veracity_in_its_place_offer_the_same_names(install: str) -> None:
    assert output("\n".join([install, *STATEMENTS, "print(type(leapp).__module__)"])) == (
        "veracity.leapp" if install else "builtins"
    )


def test_classes_are_the_same_objects_wherever_they_are_imported_from() -> None:
    code = """
        import veracity.leapp, veracity.semantics
        veracity.leapp.install_as_leapp()
        veracity.leapp.install_as_leapp()
        import leapp
        from leapp.utils.tensor_description import TensorSemantics
        print(leapp.TensorSemantics is TensorSemantics is veracity.semantics.TensorSemantics)
    """
    assert output(code) == "True"


def test_what_leapp_has_only_inside_is_refused_by_name() -> None:
    start = "import veracity.leapp; veracity.leapp.install_as_leapp()\n"
    done = run(start + "from leapp.backends.export_backend import ExportBackend")
    assert "No module named 'leapp.backends'" in done.stderr
    done = run(start + "import leapp; leapp.AnnotateAPI")
    assert "`leapp` is Veracity here, which has no `AnnotateAPI`" in done.stderr
    done = run(start + "import leapp; leapp.ExportManager().compile_models")
    assert "`ExportManager` is Veracity's here, which has no `compile_models`" in done.stderr


def test_leapp_is_itself_when_nothing_was_installed() -> None:
    code = "import veracity, veracity.leapp, leapp; print(leapp.__file__)"
    assert output(code).endswith("leapp/__init__.py")
    assert "site-packages" in output(code)


def test_installing_beside_leapp_is_refused() -> None:
    code = """
        import leapp, veracity.leapp
        from veracity import VeracityError
        try:
            veracity.leapp.install_as_leapp()
        except VeracityError as error:
            print(error)
    """
    found = output(code)
    assert "VER0901" in found
    assert "before anything imports `leapp`" in found


def test_a_script_runs_with_its_arguments_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'neighbour'\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, leapp, beside\n"
        "print(__name__, sys.argv, beside.NAME, type(leapp).__module__)\n"
    )
    done = run("", "-m", "veracity.leapp", str(script), "--flag", "1")
    assert done.stdout == f"__main__ ['{script}', '--flag', '1'] neighbour veracity.leapp\n"
    assert done.stderr == ""


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["missing.py"], 2), (["--help"], 0)])
def test_a_wrong_command_line_says_how_it_is_used(arguments: list[str], code: int) -> None:
    done = run("", "-m", "veracity.leapp", *arguments)
    assert done.returncode == code
    assert "usage: python -m veracity.leapp SCRIPT" in done.stderr


@INSTALLED
def test_the_export_manager_speaks_of_the_session(install: str, tmp_path: Path) -> None:
    code = f"""
        import torch
        import leapp
        manager = leapp.ExportManager()
        assert not manager.is_interpret_graph_enabled()
        leapp.start("graph", save_path={str(tmp_path)!r}, non_traced=["other"])
        assert leapp.ExportManager.is_interpret_graph_enabled()
        x = manager.input_tensors("n", {{"x": torch.ones(3)}})
        manager.output_tensors("n", {{"y": x * 2}}, export_with="jit")
        leapp.stop()
        leapp.compile_graph(visualize=False)
        assert not manager.is_dry_run() and not manager.is_dry_run("n")
        assert manager.is_dry_run("other")
        print(manager.get_graph_name(), list(manager.get_nodes()), manager.config_path)
    """
    path = tmp_path / "graph/graph.yaml"
    assert output(f"{install}\n{textwrap.dedent(code)}").endswith(f"graph ['n'] {path}")


@INSTALLED
@pytest.mark.parametrize(("level", "told"), [("DEBUG", True), ("ERROR", False)])
def test_the_log_is_heard_and_silenced_by_the_name_of_leapp(
    install: str, level: str, told: bool, tmp_path: Path
) -> None:
    """Two starts are a warning in both."""
    code = f"""
        import logging
        import leapp
        logging.getLogger("leapp").setLevel(logging.{level})
        logging.getLogger("leapp").addFilter(lambda record: True)
        leapp.start("graph", save_path={str(tmp_path)!r})
        logging.getLogger("leapp").setLevel(logging.{level})
        leapp.start("graph", save_path={str(tmp_path)!r})
        leapp.stop()
    """
    done = run(f"{install}\n{textwrap.dedent(code)}")
    assert done.returncode == 0
    assert ("WARNING" in done.stderr) == told


@INSTALLED
def test_handlers_of_the_logger_of_leapp_hear_us(install: str, tmp_path: Path) -> None:
    code = f"""
        import logging
        import leapp
        leapp.start("graph", save_path={str(tmp_path)!r})
        heard = logging.Handler()
        heard.emit = lambda record: print("heard")
        logging.getLogger("leapp").addHandler(heard)
        leapp.stop()
        leapp.compile_graph(visualize=False)
    """
    assert "heard" in output(f"{install}\n{textwrap.dedent(code)}")


def test_an_unchanged_script_exports_with_veracity(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import leapp
            import torch
            from leapp import annotate
            from leapp.utils.enums import InputKindEnum
            from leapp.utils.tensor_description import TensorSemantics

            leapp.start("graph", save_path=sys.argv[1])
            semantics = TensorSemantics("x", torch.ones(1, 3), InputKindEnum.JOINT_POSITION)
            x = annotate.input_tensors("double", semantics)
            annotate.output_tensors("double", {"y": x * 2}, export_with="jit")
            leapp.stop()
            assert leapp.compile_graph(visualize=False) == {"double": True}
            manager = leapp.InferenceManager(sys.argv[1] + "/graph/graph.yaml")
            print(manager.run_policy({"double/x": torch.full((1, 3), 4.0)})["double/y"].tolist())
            """
        )
    )
    found = output("", "-m", "veracity.leapp", str(script), str(tmp_path))
    assert found == "[[8.0, 8.0, 8.0]]"
    assert "veracity version" in (tmp_path / "graph/graph.yaml").read_text()
    assert "kind: state/joint/position" in (tmp_path / "graph/graph.yaml").read_text()
