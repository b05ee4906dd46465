"""Draws docs/rooms.svg: the rooms in the order of their imports, and the way of one query through them.

python -m tests.architecture.draw_rooms

The rows follow from the imports of the code, the way from the stations in docs/architecture.md. A room imports only
rooms in rows below its own.
"""

import re
from html import escape
from typing import Final

from tests.architecture.rules import imports
from tests.architecture.source import ROOT, modules

PICTURE: Final = ROOT / "docs" / "rooms.svg"
MAP: Final = ROOT / "docs" / "architecture.md"
STATION: Final = re.compile(r"^\| (\d+) \| ([^|]+) \| `(service/([\w]+)/[\w/]+\.py)` `([\w.]+)` \|$", re.MULTILINE)
LEFT, TOP, COLUMN, ROW = 132, 34, 30, 30
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2937}.number{font-size:11px;fill:#6b7280;text-anchor:middle}"
    ".row{fill:#f3f4f6}.way{fill:none;stroke:#0f766e;stroke-width:2}.station{fill:#0f766e}"
)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(drawing(), encoding="utf-8")


def drawing() -> str:
    """The picture as SVG."""
    rows = {room: place for place, room in enumerate(reversed(rooms()))}
    stations = [(int(number), title, room) for number, title, _, room, _ in STATION.findall(MAP.read_text("utf-8"))]
    width, height = LEFT + COLUMN * len(stations) + 12, TOP + ROW * len(rows) + 8
    points = [(LEFT + COLUMN * (number - 0.5), TOP + ROW * (rows[room] + 0.5)) for number, _, room in stations]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The rooms in the order of their imports, and the way of one query through them</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for room, place in rows.items():
        top = TOP + ROW * place
        parts.append(f'<rect class="row" x="8" y="{top + 2}" width="{width - 16}" height="{ROW - 4}" rx="4"/>')
        parts.append(f'<text x="18" y="{top + ROW / 2 + 4.5}">{room}</text>')
    parts.append(f'<polyline class="way" points="{" ".join(f"{x},{y}" for x, y in points)}"/>')
    for (number, title, _), (x, y) in zip(stations, points, strict=True):
        parts.append(f'<text class="number" x="{x}" y="{TOP - 12}">{number}</text>')
        parts.append(f'<circle class="station" cx="{x}" cy="{y}" r="5"><title>{escape(title)}</title></circle>')
    return "\n".join([*parts, "</svg>", ""])


def rooms() -> list[str]:
    """The folders of the service, each after all that its modules import."""
    folders = {path.name for path in (ROOT / "service").iterdir() if (path / "__init__.py").exists()}
    imported: dict[str, set[str]] = {folder: set() for folder in folders}
    for each in modules("service"):
        if each.room in folders:
            names = {name.split(".")[1] for _, name in imports(each) if name.startswith("service.")}
            imported[each.room] |= names & folders - {each.room}
    ordered: list[str] = []
    while len(ordered) < len(folders):
        free = {room for room in folders - set(ordered) if imported[room] <= set(ordered)}
        if not free:
            raise ValueError(f"these rooms import each other: {sorted(folders - set(ordered))}")
        ordered += sorted(free)
    return ordered


if __name__ == "__main__":
    main()
