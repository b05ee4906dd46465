"""Notebooks, run cell by cell in one namespace: what they print, show and draw.

`python -m tests.api.notebooks` runs every notebook under docs against a service in memory and keeps its outputs in it.
"""

import ast
import base64
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat
import pytest
from matplotlib import pyplot as plt

from tests.api.documented import DOCS, Reader
from tests.api.world import World, build_world

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of its cells, run in its own folder. Raises what a cell raises."""
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    mpl.use("Agg")
    plt.close("all")  # figures of other tests are none of the notebook's
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(path.parent):
        for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), start=1):
            cell.execution_count, cell.outputs = number, list(_outputs(cell.source, names, number))
    return notebook


def _outputs(source: str, names: dict[str, Any], number: int) -> Iterator[nbformat.NotebookNode]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shown = _executed(source, names)
    if printed.getvalue():
        yield nbformat.v4.new_output("stream", name="stdout", text=printed.getvalue())  # type: ignore[no-untyped-call]
    if shown is not None:
        yield _output("execute_result", _forms(shown), execution_count=number)
    for figure in plt.get_fignums():
        png = io.BytesIO()
        plt.figure(figure).savefig(png, format="png", dpi=90, metadata={"Software": None})
        yield _output("display_data", {"image/png": base64.b64encode(png.getvalue()).decode()})
    plt.close("all")


def _executed(source: str, names: dict[str, Any]) -> Any:
    """The value of the last line where that is an expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own notebook
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 - the same


def _forms(shown: Any) -> dict[str, str]:
    html = shown._repr_html_() if hasattr(shown, "_repr_html_") else None
    return {"text/plain": repr(shown), **({} if html is None else {"text/html": html})}


def _output(kind: str, data: dict[str, str], **more: Any) -> nbformat.NotebookNode:
    made: nbformat.NotebookNode = nbformat.v4.new_output(kind, data=data, **more)  # type: ignore[no-untyped-call]
    return made


def reader_of(world: World, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader with a curator's key, whose clients are led to the service in memory."""
    reader = Reader(world=world, monkeypatch=monkeypatch)
    monkeypatch.setenv("SPARING_API_KEY", world.keys["curator"])
    return reader


def main() -> None:
    """Write the outputs of every notebook."""
    for path in NOTEBOOKS:
        with pytest.MonkeyPatch.context() as monkeypatch:
            reader_of(build_world(), monkeypatch)
            nbformat.write(run(path), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
