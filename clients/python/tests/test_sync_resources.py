"""The resources of the client are written from those of the asynchronous one, which are their only source."""

import pytest

from clients.python import sync_resources
from sparing import _async_resources


def test_the_resources_are_as_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file, byte for byte; one that was changed by itself is named."""
    monkeypatch.setattr("sys.argv", ["sync_resources.py", "--check"])
    assert sync_resources.main() == 0
    own, *_ = _async_resources.__path__
    written = {path.name for path in sync_resources.SOURCE.glob("*.py")}
    assert written == {path.name for path in sync_resources.TARGET.glob("*.py")}
    assert str(sync_resources.SOURCE) == own
    monkeypatch.setattr(sync_resources, "written", lambda text: text)
    assert sync_resources.main() == 1
    assert capsys.readouterr().out.startswith("run sync_resources.py: allowances.py, datasets.py")


def test_words_of_waiting_are_left_out() -> None:
    """And nothing else: a name that has `async` in it stays."""
    text = '"""Reads asynchronously."""\n\n\nasync def asyncs(a: AsyncSender) -> None:\n    await a.run()\n'
    assert sync_resources.written(text) == text.replace("async def", "def").replace("AsyncS", "S").replace("await ", "")
