"""Documents that run: their blocks, in order, against a service in memory, by the Python client and by HTTP."""

import contextlib
import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from typer.main import get_command

from service.cli.app import app as command_line
from tests.api.world import World, answer_of

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\S+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPES = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block: its language, the words after it, its text, and the line on which it begins."""

    language: str
    words: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """Every block of a page."""
    return [
        Block(language=found[1], words=found[2] or "", text=found[3], line=page[: found.start()].count("\n") + 1)
        for found in _BLOCK.finditer(page)
    ]


def printed_by(program: str, names: dict[str, Any], *, line: int = 0) -> str:
    """The text that a program prints, run in a namespace; `line` is where it begins on its page."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + program, "page", "exec"), names)  # noqa: S102 - our own page
    return printed.getvalue()


@dataclass(kw_only=True)
class Reader:
    """Does what a page says, as its reader would; `outcome` is what the next block has to show.

    `warnings` are those of all answers and previews, of which a page that is followed has none.
    """

    world: World
    monkeypatch: Any
    dataset: str = ""
    outcome: Any = None
    names: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Lead every client to the service in memory."""
        self.monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: self._handle(request))
        self.monkeypatch.setenv("SPARING_URL", "http://sparing")
        self.names |= {"curator_key": self.world.keys["curator"], "analyst_key": self.world.keys["analyst"]}

    def read(self, block: Block) -> tuple[Any, Any] | None:
        """Do as the block says. For a block that shows an outcome: the shown and the true one."""
        place = f"{block.language} {block.words}".strip()
        match block.language, block.words.split(" ")[0]:
            case "json", "registration":
                self._register(block)
            case (("csv" | "ndjson"), _):
                self._upload(block)
            case "python", _:
                self.outcome = printed_by(block.text, self.names, line=block.line)
            case "sh", _:
                self._look_up_commands(block)
            case "json", ("report" | "problem"):
                shown = json.loads(block.text)
                return shown, {name: self.outcome.get(name) for name in shown}
            case "text", _:
                return block.text, self.outcome
            case _:
                raise ValueError(f"line {block.line}: nothing is known of {place}")
        return None

    def _register(self, block: Block) -> None:
        body = json.loads(block.text)
        reply = self._curate("/v1/datasets", content=block.text, content_type="application/json")
        assert reply.status_code == 201, reply.text
        self.dataset, self.outcome = body["name"], reply.json()

    def _upload(self, block: Block) -> None:
        table, _, options = block.words.partition(" ")
        path = f"/v1/datasets/{self.dataset}/tables/{table}/rows{options}"
        reply = self._curate(path, content=block.text, content_type=_TYPES[block.language])
        self.outcome = reply.json()

    def _look_up_commands(self, block: Block) -> None:
        """Every `sparing` command of a shell block exists, with its options. None is run."""
        for said in re.findall(r"(?:^| )sparing (.+)$", block.text, re.MULTILINE):
            words = re.match(r"[a-z]+(?: [a-z]+(?= |$))*", said)
            assert words is not None, said
            options = set(re.findall(r"--([a-z-]+)", said))
            assert options <= _options_of(words[0].split()), said

    def _curate(self, path: str, *, content: str, content_type: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.world.keys['curator']}", "Content-Type": content_type}
        return self._handle(httpx.Request("POST", f"http://sparing{path}", headers=headers, content=content.encode()))

    def warned(self, reply: httpx.Response) -> None:
        """Keep the warnings of a reply, of every answer in a batch too."""
        found = reply.json() if reply.headers.get("content-type") == "application/json" else None
        answers = found.get("answers") if isinstance(found, dict) else None
        for each in [found, *(answers if isinstance(answers, list) else [])]:
            is_report = isinstance(each, dict) and "individuals" in each  # of an upload, which a page shows by itself
            self.warnings += each.get("warnings", []) if isinstance(each, dict) and not is_report else []

    def _handle(self, request: httpx.Request) -> httpx.Response:
        reply = answer_of(self.world.app, request)
        self.warned(reply)
        return reply


def _options_of(words: list[str]) -> set[str]:
    """The long options of a command. Words after the command's own name are its arguments."""
    found: Any = get_command(command_line)
    for word in words:
        commands = getattr(found, "commands", None)
        if commands is None:
            break
        found = commands[word]
    return {option.removeprefix("--") for each in found.params for option in each.opts}
