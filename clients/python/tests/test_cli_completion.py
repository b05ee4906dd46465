"""Completion: in a real bash, and for the other shells that nothing is missing from the script."""

import argparse
import shlex
import shutil
import subprocess

import pytest

from sparing._cli import main
from sparing._cli_completion import script
from sparing._cli_grammar import COMMANDS, PROGRAM, SHELLS, parser
from tests.waiting import PATIENCE_S

EVERYTHING = [command.name for command in COMMANDS]


def completed(words: list[str]) -> list[str]:
    """The proposals of bash for the last of the words."""
    bash = shutil.which("bash")
    assert bash is not None
    program = f"""
source /dev/stdin <<'SCRIPT'
{script("bash")}
SCRIPT
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}
$(complete -p {PROGRAM} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    told = subprocess.run(
        [bash, "--norc", "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (told.returncode, told.stderr) == (0, "")
    return told.stdout.split()


@pytest.mark.parametrize(
    ("words", "proposals"),
    [
        ([PROGRAM, ""], [*EVERYTHING, "--help", "--version"]),
        ([PROGRAM, "p"], ["preview"]),
        ([PROGRAM, "query", "shop", "--s"], ["--sql", "--sigma", "--share", "--scale"]),
        ([PROGRAM, "query", "--sql", ""], []),
        ([PROGRAM, "query", "shop", ""], []),  # files, by bash itself
        ([PROGRAM, "history", "--"], ["--limit", "--steps", "--json", "--url", "--timeout", "--help"]),
        ([PROGRAM, "completion", ""], [*SHELLS, "--help"]),
        ([PROGRAM, "completion", "b"], ["bash"]),
    ],
    ids=str,
)
def test_bash_completes(words: list[str], proposals: list[str]) -> None:
    """Commands, options and choices."""
    assert completed(words) == proposals


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The script is the one that the command prints."""
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    dash = "-l " if shell == "fish" else "--"
    for command in COMMANDS:
        assert command.name in text
        missing = [option.name for option in command.options if f"{dash}{option.name}" not in text]
        assert missing == []


def test_the_parser_has_the_commands_and_options_of_the_scripts() -> None:
    """Both are made of one list; each option is taken where it is proposed."""
    for command in COMMANDS:
        words = [command.name, *(argument.choices[0] if argument.choices else "x" for argument in command.arguments)]
        for option in command.options:
            value = option.choices[0] if option.choices else "1"
            words += [f"--{option.name}"] if option.value is None else [f"--{option.name}", value]
        found = parser().parse_args(words)
        assert isinstance(found, argparse.Namespace)
        assert found.command == command.name
