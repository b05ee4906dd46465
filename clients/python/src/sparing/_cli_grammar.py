"""The commands of `sparing-client` and their options, from which the parser and the completion scripts are made."""

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparing._constants import ENV_API_KEY, ENV_URL, TIMEOUT_S
from sparing._version import __version__

PROGRAM = "sparing-client"
SHELLS = ("bash", "zsh", "fish")
HISTORY_ROWS = 20
EPILOG = f"""\
{ENV_URL} has the service's address, and {ENV_API_KEY} the analyst's key. A key is never given on the command line,
where others on the machine could read it.

exit status:
  0  the answer is on standard output
  1  the service refused the request
  2  the command is wrong, and nothing was sent
  3  no answer: the service is unreachable or unavailable, or something else answered
  130  interrupted
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a command; `value` names its argument, and is None if it takes none."""

    name: str
    help: str
    value: str | None = None
    type: Callable[[str], object] = str
    default: object = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A positional argument."""

    name: str
    help: str
    choices: tuple[str, ...] = ()
    is_file: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command."""

    name: str
    help: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()


def whole(text: str) -> int:
    """An integer written in the digits 0 to 9 alone; `int` also reads `1_000`. Raises ValueError for other texts."""
    if re.fullmatch("-?[0-9]{1,18}", text) is None:
        raise ValueError(f"{text!r} is no integer")
    return int(text)


def number(text: str) -> float:
    """A finite number written in the digits 0 to 9. Raises ValueError for others, such as `1_0`, ` 5 ` and `nan`."""
    if re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is None:
        raise ValueError(f"{text!r} is no number")
    return float(text)


def numbers(text: str) -> float | list[float]:
    """One number, or several separated by commas. Raises ValueError for other texts."""
    found = [number(each) for each in text.split(",")]
    return found if len(found) > 1 else found[0]


_JSON = Option(name="json", help="print JSON")
_SERVICE = (
    Option(name="url", help=f"the service's address; default: {ENV_URL}", value="URL"),
    Option(name="timeout", help="seconds that one try may take", value="SECONDS", type=number, default=TIMEOUT_S),
)
_DATASET = Argument(name="dataset", help="the name of the dataset")
_QUESTION = (
    Option(name="sql", help="the query in SQL, in place of a document", value="TEXT"),
    Option(
        name="sigma",
        help="standard deviation of the noise, of all items or of each: 5,2000",
        value="NUMBERS",
        type=numbers,
    ),
    Option(name="rho", help="noise such that no individual is charged more", value="NUMBER", type=number),
    Option(name="share", help="the same, as a share of the dataset's budget", value="NUMBER", type=number),
    Option(
        name="half-width",
        help="noise such that numbers are within this, or of each item",
        value="NUMBERS",
        type=numbers,
    ),
    Option(name="scale", help="scale of Laplace noise, in place of a Gaussian's sigma", value="NUMBER", type=number),
    Option(
        name="mechanism",
        help="law of the noise; default: gaussian, or laplace with --scale",
        value="LAW",
        choices=("gaussian", "laplace"),
    ),
    Option(
        name="weights", help="of --rho or --share, by item: 3,1; default: equal parts", value="NUMBERS", type=numbers
    ),
    Option(name="confidence", help="of --half-width; default: 0.95", value="NUMBER", type=number),
    Option(
        name="l2-clip",
        help="bound on the norm of one individual's part, or of each item",
        value="NUMBERS",
        type=numbers,
    ),
    Option(name="rows", help="count at most so many events of an individual", value="COUNT", type=whole),
    Option(name="fresh", help="do not take an answer that was released before"),
)
_DOCUMENT = Argument(
    name="file", help="the query as a JSON document; default: standard input", is_file=True, is_optional=True
)

COMMANDS = (
    Command(name="datasets", help="list the datasets that the key may ask", options=(_JSON, *_SERVICE)),
    Command(
        name="show",
        help="show a dataset's guarantee, tables and domains",
        arguments=(_DATASET,),
        options=(_JSON, *_SERVICE),
    ),
    Command(
        name="query",
        help="ask a query and print its answer",
        arguments=(_DATASET, _DOCUMENT),
        options=(
            *_QUESTION,
            Option(name="idempotency-key", help="the key of an earlier try: its answer is fetched", value="KEY"),
            _JSON,
            *_SERVICE,
        ),
    ),
    Command(
        name="preview",
        help="show the error and the cost of a query, free of charge",
        arguments=(_DATASET, _DOCUMENT),
        options=(*_QUESTION, _JSON, *_SERVICE),
    ),
    Command(
        name="history",
        help="list your own releases, newest first",
        options=(
            Option(
                name="limit",
                help=f"at most so many; default: {HISTORY_ROWS}",
                value="COUNT",
                type=whole,
                default=HISTORY_ROWS,
            ),
            Option(name="steps", help="a line for each step of a fit, in place of one for all of them"),
            _JSON,
            *_SERVICE,
        ),
    ),
    Command(name="allowances", help="show the worst-case charges that you may still cause", options=(_JSON, *_SERVICE)),
    Command(
        name="completion",
        help="print a script that completes these commands in a shell",
        arguments=(Argument(name="shell", help="the shell", choices=SHELLS),),
    ),
)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Ask a Sparing service from the command line.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"sparing-client {__version__}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sentence = f"{command.help[0].upper()}{command.help[1:]}."
        _fill(commands.add_parser(command.name, help=command.help, description=sentence, allow_abbrev=False), command)
    return made


def _fill(made: argparse.ArgumentParser, command: Command) -> None:
    for argument in command.arguments:
        limits: Mapping[str, object] = {"choices": argument.choices} if argument.choices else {}
        nargs = {"nargs": "?"} if argument.is_optional else {}
        made.add_argument(argument.name, help=argument.help, metavar=argument.name.upper(), **limits, **nargs)  # type: ignore[arg-type]
    for option in command.options:
        if option.value is None:
            made.add_argument(f"--{option.name}", help=option.help, action="store_true")
        else:
            made.add_argument(
                f"--{option.name}",
                help=option.help,
                metavar=option.value,
                type=option.type,
                default=option.default,
                choices=option.choices or None,
            )
