"""Notebooks become pages: words, code, and each kind of output."""

import base64
import json
from pathlib import Path
from typing import Any

from clients.guide.notebooks import page_of

PNG = b"\x89PNG made up"


def test_every_kind_of_cell_and_output(tmp_path: Path) -> None:
    """Tables lose their styles, pictures become files, text stays text."""
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["3"]}},
        {
            "output_type": "execute_result",
            "data": {
                "text/html": ["<style scoped>td {}</style>", '<table border="1" style="a: b">'],
                "text/plain": ["x"],
            },
        },
        {"output_type": "display_data", "data": {"image/png": base64.b64encode(PNG).decode()}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "word"]},
        {"cell_type": "code", "source": ["ask()\n", "look()"], "outputs": outputs},
    ]
    (tmp_path / "walk.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")

    page = page_of(tmp_path / "walk.ipynb")

    assert page.pictures == {"walk-1.png": PNG}
    assert page.text == (
        "# A\nword\n\n```python\nask()\nlook()\n```\n\n```text\none\ntwo\n```\n\n```text\n3\n```\n\n"
        '<div class="output"><table></div>\n\n![](walk-1.png)\n'
    )
