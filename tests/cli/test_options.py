"""Lines of commands on a terminal."""

import pytest

from service.cli.options import fail, tell


def test_a_line_of_a_command_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A name in the database may hold anything: a restored one, or one of an identity provider."""
    tell("a name\x1b[2J\x9b31m\u202e\ud800\nand a second line")
    tell("å \r", is_error=True)
    with pytest.raises(SystemExit, match="1"):
        fail("\x1b]0;x\x07")
    printed = capsys.readouterr()
    assert printed.out == "a name\\x1b[2J\\x9b31m\\u202e\\ud800\nand a second line\n"
    assert printed.err == "å \\r\nsparing: \\x1b]0;x\\x07\n"
