"""The notebook of the manual runs, and shows tables and pictures; `make test-integrations` runs it."""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "examples" / "tour.ipynb"


def test_the_notebook_is_stored_without_outputs():
    text = NOTEBOOK.read_text("utf-8")
    assert text.count('"outputs": []') == text.count('"cell_type": "code"') > 5


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [set(output.data) for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    # The model and the scores as tables; the parse, the derivation and the dependencies as pictures.
    assert sum("text/html" in kinds for kinds in shown) == 2
    assert sum("image/svg+xml" in kinds for kinds in shown) == 3
