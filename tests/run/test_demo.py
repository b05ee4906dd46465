"""The demo where its packages are not installed; its run from beginning to end is tests/e2e/test_demo.py."""

import sys
from pathlib import Path

import pytest

from service.run.demo import DemoFailed, demo
from service.settings.settings import Settings


@pytest.mark.parametrize("missing", ["sparing", "sparing_demo"])
def test_a_missing_package_is_named_with_the_way_to_install_it(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the demo's packages no server is started, and one line says which is missing and what to install."""
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(DemoFailed) as caught:
        demo(Settings.of({}, home=tmp_path / "home"), host="127.0.0.1", port=0, stay=False)

    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"the demo needs {missing}: ")
    assert "make demo" in line
    assert "`sparing[demo]`" in line
    assert not (tmp_path / "home").exists()
