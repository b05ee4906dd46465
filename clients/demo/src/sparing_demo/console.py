"""The report on a terminal: text, one table and charts of block characters."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from sparing_demo.report import Account, DemoReport, smoothed_active_shares

TOP = 15  # areas in the table
BAR_WIDTH = 44  # characters
CHART_WIDTH, CHART_HEIGHT = 58, 6  # characters
WINDOW = 25  # queries that one point of the trend looks back on
EIGHTHS = " ▏▎▍▌▋▊▉█"
LEVELS = " ▁▂▃▄▅▆▇█"
INK, WARM, FAINT = "bold cyan", "yellow", "bright_black"


def show(report: DemoReport, console: Console) -> None:
    """Print the whole report."""
    parts = (_headline, _table, _comparison, _trend, _budgets, _account, _files)
    console.print(Group(*(piece for part in parts for piece in (part(report), Text()))))


def _headline(report: DemoReport) -> RenderableType:
    text = Text.assemble(
        ("294 questions, three areas a person", "bold") if report.answered == 294 else ("The answers", "bold"),
        f"\n{report.budgets.people:,} people, {report.answered} areas of a web site. An analyst asked how many people "
        "visited each area, most promising first, steering by the answers so far. Each person was promised "
        f"{report.promise} over everything that is ever asked, and is charged only for the areas that person visited. "
        f"All answers took {report.seconds:.1f} seconds.",
    )
    if report.reused > 0:
        those = "All" if report.reused == report.answered else f"{report.reused} of the"
        text.append(
            f"\n{those} {report.answered} answers had been released before: the same question gets the "
            "same answer, and nothing was charged again.",
            style=WARM,
        )
    return Panel(text, border_style=FAINT, padding=(0, 1))


def _table(report: DemoReport) -> RenderableType:
    table = Table(box=None, header_style=FAINT, pad_edge=False, padding=(0, 1), expand=False)
    table.add_column(f"the {TOP} largest answers", no_wrap=True, max_width=27, overflow="ellipsis")
    for title in ("asked", "answer", "truth", "error", ""):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    top = report.largest[:TOP]
    for result in top:
        table.add_row(
            result.area.title,
            Text(f"#{result.number}", style=FAINT),
            Text.assemble((f"{result.answer:,.0f}", "bold"), (f" ±{result.half_width_95:.0f}", FAINT)),
            f"{result.truth:,}",
            f"{result.error:+.0f}",
            Text("✓", style="green") if result.is_inside else Text("✗", style="red"),
            Text(bar(result.answer / top[0].answer, 14), style="cyan"),
        )
    caption = Text(
        f"Of {report.answered} error bars {report.inside_counted} cover what was counted, {0.95 * report.answered:.0f} "
        f"or more on average. {report.inside} cover the truth, which those left out belong to; it is the curator's, "
        f"and no analyst sees it. The first 50 questions found "
        f"{report.share_found_by(50):.0%} of all visits; a random order finds {50 / report.answered:.0%}.",
        style=FAINT,
    )
    return Group(table, caption)


def _comparison(report: DemoReport) -> RenderableType:
    allowed = min(report.worst_case_answered, report.answered)
    table = Table.grid(padding=(0, 1))
    rows = (("worst-case accounting", allowed, WARM), ("individual filtering", report.answered, INK))
    for name, number, style in rows:
        table.add_row(name, Text(f"{bar(number / report.answered, BAR_WIDTH)} {number}", style=style))
    ratio = report.worst_case_half_width_95 / report.half_width_95
    words = Text(
        f"Charging everybody for every question would have ended after {allowed}, or needed error bars of "
        f"±{report.worst_case_half_width_95:.0f}, {ratio:.1f} times as wide, to reach {report.answered}.",
        style=FAINT,
    )
    title = f"questions answered at ±{report.half_width_95:.0f} under the same guarantee"
    return Group(_rule(title), table, words)


def _trend(report: DemoReport) -> RenderableType:
    shares = smoothed_active_shares(report.results, window=WINDOW)
    floor = min(0.95, int(100 * min(shares)) / 100)
    lines = chart(shares, width=CHART_WIDTH, height=CHART_HEIGHT, low=floor, high=1.0)
    picture = Table.grid(padding=(0, 1))
    for number, line in enumerate(lines):
        edge = {0: "100%", len(lines) - 1: f"{floor:.0%}"}.get(number, "")
        picture.add_row(Text(edge, style=FAINT, justify="right"), Text(line, style="cyan"))
    horizon = round(CHART_WIDTH * report.worst_case_answered / report.answered)
    picture.add_row("", Text(f"{'▲':>{max(1, horizon)}} worst-case accounting stops here", style=WARM, no_wrap=True))
    words = Text(
        f"Of the visits to the last 50 areas asked about, {report.active_share_last_50:.1%} were still counted; of all "
        f"visits together, {report.active_share:.2%}. Only the curator sees this.",
        style=FAINT,
    )
    return Group(_rule("who could still pay, question by question"), picture, words)


def _budgets(report: DemoReport) -> RenderableType:
    budgets = report.budgets
    table = Table.grid(padding=(0, 1))
    for tenth, people in reversed(list(enumerate(budgets.remaining_share))):
        share = people / max(1, budgets.people)
        label = f"{10 * tenth:>2}-{10 * tenth + 10}% left"
        table.add_row(Text(label, style=FAINT), Text(f"{bar(share, BAR_WIDTH)} {people:,}", style="cyan"))
    words = Text(
        f"On average {budgets.spent_share_mean:.0%} of a budget is spent. {budgets.out_of_budget} of "
        f"{budgets.people:,} people cannot afford another question, and nobody spent more than "
        f"{budgets.spent_share_max:.1%}.",
        style=FAINT,
    )
    return Group(_rule("what is left of each person's budget"), table, words)


def _account(report: DemoReport) -> RenderableType:
    account = report.account
    words = Text(
        f"Person {account.person} visited {account.areas_visited} areas, the most of all. Its own key shows it "
        f"{account.charged} receipts that charged it, {account.left_out} that left it out, {account.untouched} that "
        f"did not touch it, and {account.share_spent:.1%} of its budget spent. "
        f"Promised is ε = {account.promise_epsilon:.3g}; {_so_far(account)}."
    )
    return Group(_rule("what one person sees"), words)


def _so_far(account: Account) -> str:
    """The bound on the loss so far, in words.

    It holds whenever it is read, as the spent total's own epsilon would not.
    """
    if account.epsilon_so_far_time_uniform is None:
        return "no smaller bound holds so far"
    return f"so far the loss is within {account.epsilon_so_far_time_uniform:.3g}, whenever one looks"


def _files(report: DemoReport) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for name, where in report.files.items():
        table.add_row(Text(name, style=FAINT), Text(str(where), overflow="fold"))
    return Group(_rule("files"), table)


def _rule(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style=FAINT)


def bar(share: float, width: int) -> str:
    """A bar of block characters, `width` characters long at share 1; anything above nothing shows."""
    eighths = max(1 if share > 0 else 0, round(8 * width * min(1.0, max(0.0, share))))
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 > 0 else "")


def chart(values: Sequence[float], *, width: int, height: int, low: float, high: float) -> list[str]:
    """An area chart of block characters, top line first; `values` are averaged into `width` columns."""
    columns = [(value - low) / (high - low) for value in _averaged(values, width)]
    filled = [round(8 * height * min(1.0, max(0.0, column))) for column in columns]
    return [
        "".join(LEVELS[min(8, max(0, eighths - 8 * line))] for eighths in filled) for line in reversed(range(height))
    ]


def _averaged(values: Sequence[float], columns: int) -> Iterable[float]:
    for column in range(columns):
        start = column * len(values) // columns
        end = max(start + 1, (column + 1) * len(values) // columns)
        yield sum(values[start:end]) / (end - start)
