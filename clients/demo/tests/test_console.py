"""Charts of block characters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sparing_demo.console import bar, chart


def test_bars() -> None:
    """Eighths of a character; a small value is still visible."""
    assert [bar(share, 4) for share in (0.0, 1e-9, 0.25, 0.5 + 1 / 32, 1.0, 7.0, -1.0)] == [
        "", "▏", "█", "██▏", "████", "████", "",
    ]  # fmt: skip


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=400), st.integers(1, 80), st.integers(1, 8))
def test_a_chart_fills_its_frame(values: list[float], width: int, height: int) -> None:
    """For all numbers: so many lines of so many characters, filled from below."""
    lines = chart(values, width=width, height=height, low=0.5, high=1.0)

    assert [len(line) for line in lines] == [width] * height
    for column in zip(*lines, strict=True):
        assert "".join(column) == "".join(sorted(column, key=" ▁▂▃▄▅▆▇█".index))


def test_a_chart_by_hand() -> None:
    """Half filled, full, and below the floor."""
    assert chart([0.75, 1.0, 0.2], width=3, height=2, low=0.5, high=1.0) == [" █ ", "██ "]
