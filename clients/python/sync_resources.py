"""Writes the resources of the client from those of the asynchronous one, of which they differ in words alone.

python clients/python/sync_resources.py          writes them
python clients/python/sync_resources.py --check  says which are not as written; the exit status is 1 if there is one

`clients/python/src/sparing/_async_resources` is the source: change it, and write the others.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent / "src" / "sparing"
SOURCE, TARGET = PACKAGE / "_async_resources", PACKAGE / "_resources"
WORDS: Final = ((r"\basync (?=def |for |with )", ""), (r"\bawait ", ""), (r"\b_async_", "_"), (r"\bAsync(?=[A-Z])", ""))
"""Patterns, and what stands in their place."""


def main() -> int:
    """Write the resources, or compare them."""
    parser = argparse.ArgumentParser(description="writes the resources of the client from the asynchronous ones")
    parser.add_argument("--check", action="store_true", help="write nothing, and name what is not as written")
    is_check = parser.parse_args().check
    texts = {TARGET / path.name: written(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.glob("*.py"))}
    there = {path: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    others = {path: text for path, text in texts.items() if text != there.get(path)}
    if is_check and others:
        names = ", ".join(path.name for path in others)
        sys.stdout.write(f"run {Path(__file__).name}: {names} differ from the asynchronous resources\n")
        return 1
    for path, text in others.items():
        path.write_text(text, encoding="utf-8")
    return 0


def written(text: str) -> str:
    """The resources of the client, from the text of the asynchronous ones."""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET / "resource.py"), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
