"""The scripts of the pages as files: what is served, how wide it is, and where the tools that check them come from."""

import json
import re

from service.api.routes.pages import FORMS, page_files
from tests.architecture.source import ROOT

FOLDER = ROOT / "clients" / "dashboard"
COLUMNS_MAX = 120
PLACE = re.compile(r"\"resolved\"|\.tgz|_git|file:")


def test_only_what_a_page_needs_is_served() -> None:
    """Pages, scripts, styles, the icon and the forms of items; no settings of tools, nothing from a folder below."""
    endings = {name.rsplit(".", 1)[-1] for name in page_files().keys() - {FORMS}}
    assert endings == {"html", "js", "css", "svg"}
    assert {path.name for path in FOLDER.glob("*.js")} <= page_files().keys()


def test_no_line_of_a_script_is_wider_than_the_others() -> None:
    """The formatter breaks no text; a person does."""
    wide = [
        f"{path.name}:{number}"
        for path in sorted(FOLDER.glob("*.js"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]
    assert wide == []


def test_the_tools_are_pinned_by_hash_and_by_no_place() -> None:
    """Each package has an integrity; the machine's own configuration says where it is fetched."""
    text = (FOLDER / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    asked = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["devDependencies"]

    assert [name for name, each in packages.items() if name and not each["integrity"].startswith("sha512-")] == []
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert PLACE.findall(text) == []
