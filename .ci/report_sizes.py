"""Print the lines and statements of each room, and the longest modules and functions of the service.

It is a report: nothing fails by it, because a number that is a limit becomes a target.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 5

Size = tuple[int, str]
"""A number of lines, and what has them."""


def main() -> None:
    """Print the report."""
    modules = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "service").rglob("*.py"))}
    rooms: dict[str, list[int]] = {}
    for path, text in modules.items():
        counts = rooms.setdefault(path.relative_to(ROOT / "service").parts[0].removesuffix(".py"), [0, 0])
        counts[0] += len(text.splitlines())
        counts[1] += sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text)))
    told = ", ".join(
        f"{room} {lines:,} ({statements:,})" for room, (lines, statements) in rooms.items() if lines > LONGEST
    )
    print(f"Lines and statements by room: {told}")
    print(f"Longest modules: {_longest([(len(text.splitlines()), _name(path)) for path, text in modules.items()])}")
    print(f"Longest functions: {_longest([size for path, text in modules.items() for size in _functions(path, text)])}")


def _functions(path: Path, text: str) -> Iterator[Size]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{_name(path)}:{node.lineno} {node.name}"


def _longest(sizes: list[Size]) -> str:
    return ", ".join(f"{name} ({lines})" for lines, name in sorted(sizes, reverse=True)[:LONGEST])


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    main()
