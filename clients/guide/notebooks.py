"""Notebooks as pages: the words, the code, and the outputs that the notebook file has stored."""

import base64
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_STYLE: Final = re.compile(r"<style\b.*?</style>|\s(?:style|border)=\"[^\"]*\"", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class NotebookPage:
    """A page in Markdown, and its pictures in PNG by file name."""

    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def page_of(path: Path) -> NotebookPage:
    """The page of a notebook.

    Tables lose their own styles, because the guide's content policy allows no styles in pages.
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            found = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in found:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(found["image/png"]))
                parts.append(f"![]({name})")
            else:
                parts.append(_shown(found))
    return NotebookPage(text="\n\n".join(parts) + "\n", pictures=pictures)


def _shown(found: dict[str, Any]) -> str:
    if "text/html" in found:
        return f'<div class="output">{_STYLE.sub("", "".join(found["text/html"]))}</div>'
    return f"```text\n{''.join(found['text/plain']).rstrip()}\n```"
