"""The price is an upper bound, shown: the work of each kind of query on the worst data, divided by its public price.

    python -m loadtests.bench_prices [--people 10000 1000000] [--only leaf_row] [--quick] [--speed speed.json]
    python -m loadtests.bench_prices --shards 2 --people 300000

Work is the processor time of one thread from the evaluation of a query to the rows that are committed, the median of
some repetitions. It is compared with the public price without the bytes of the commit, under the constants of a new
calibration of this machine or of a kept one. The table is by size, the worst first. Beside each ratio is the least
value of the constant under which the price covers the work. The exit status is 1 if any work exceeds its price. A whole
run takes about four minutes, --quick a quarter of that.

With --shards the dataset is divided over that number of processes. Work is then wall time, and the price is that of the
fullest shard with this machine's cores. First uses of an index are left out.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from loadtests.divided_prices import divided_data
from loadtests.in_process import drawn
from loadtests.priced_queries import COUNT, QUERIES, Priced
from loadtests.worst_data import ROOMY, STANDINGS, Standing, charged, made, roomy, schema
from loadtests.writer_work import state_of, work
from service.core.charge import UNITS_PER_RHO
from service.engine.memory import DatasetMemory
from service.maintenance.calibration import Commits, measured_speed
from service.query.cost import Speed, cost_of
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from service.run.speed import among_shards

PEOPLE = (1000, 10_000, 300_000, 1_000_000)
QUICK_PEOPLE = (1000, 100_000)
FIRST_REPETITIONS = 3
HEADER = f"{'work/price':>10} {'people':>9} {'work ms':>9} {'price ms':>9} {'needed ns':>10}  {'constant':17} data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One query on one set of data.

    At `needed` the constant would give a price equal to the work; None if it cannot.
    """

    people: int
    constant: str
    data: str
    standing: str
    work_ns: float
    price_ns: float
    needed: float | None

    @property
    def ratio(self) -> float:
        """The work divided by the price."""
        return self.work_ns / self.price_ns

    def line(self) -> str:
        """One row of the table."""
        needed = "" if self.needed is None else f"{self.needed:.2f}"
        return (
            f"{self.ratio:10.3f} {self.people:9,} {self.work_ns / 1e6:9.3f} {self.price_ns / 1e6:9.3f} {needed:>10}  "
            f"{self.constant:17} {self.data}; {self.standing}"
        )


def main() -> int:
    """Measure, and print the table and the slowest data of each constant."""
    options = parsed(sys.argv[1:])
    found: list[Row] = []
    for people in options.people:
        speed = kept(options.speed, options.shards)  # a machine that is shared may be another one after each size
        print("\nconstants: " + ", ".join(f"{name} {value:.4g}" for name, value in asdict(speed).items()))
        found += measured(people, speed, options)
        print(f"{HEADER}\n" + "\n".join(row.line() for row in worst_first(found) if row.people == people), flush=True)
    print(f"\nthe slowest data of each constant\n{HEADER}\n" + "\n".join(row.line() for row in slowest(found)))
    if options.json is not None:
        options.json.write_text(json.dumps([{**asdict(row), "ratio": row.ratio} for row in found], indent=1) + "\n")
    return verdict(found)


def verdict(found: Sequence[Row]) -> int:
    """The exit status: 1 if any work exceeds its price."""
    beyond = [row for row in found if row.ratio > 1]
    print(f"{len(beyond)} of {len(found)} exceed their price")
    return 1 if beyond else 0


def worst_first(found: Iterable[Row]) -> list[Row]:
    """The rows, those with the largest ratio first."""
    return sorted(found, key=lambda row: -row.ratio)


def slowest(found: Sequence[Row]) -> list[Row]:
    """For each constant, the row with the largest ratio."""
    first: dict[str, Row] = {}
    for row in worst_first(found):
        first.setdefault(row.constant, row)
    return list(first.values())


def measured(people: int, speed: Speed, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of all queries among `people` people."""
    shards, tables = options.shards, schema(people)
    with ExitStack() as opened:
        divided = opened.enter_context(divided_data(people, shards)) if shards > 1 else None
        memory = made(people) if divided is None else divided.memory
        for priced in QUERIES:
            if options.only not in f"{priced.constant} {priced.data}" or (divided is not None and priced.is_first):
                continue
            plan = plan_of(priced, tables, people)
            for standing in STANDINGS if priced.standings else (ROOMY,):
                if divided is None:
                    taken = times_ns(priced, plan, memory, standing, options.repetitions)
                else:
                    taken = divided.times_ns(plan, standing, options.repetitions)
                name, work_ns = standing.name, median(taken)
                yield row_of(priced, plan, people, speed, standing=name, work_ns=work_ns, schema=tables, shards=shards)


def times_ns(priced: Priced, plan: Plan, memory: DatasetMemory, standing: Standing, repetitions: int) -> list[int]:
    """The times of a query with all indexes and tallies made; for a first query, with none of them each time."""
    if priced.is_first:
        return [once_ns(plan, made(memory.slots_used), ROOMY) for _ in range(FIRST_REPETITIONS)]
    return [once_ns(plan, memory, standing) for _ in range(repetitions + 1)][1:]


def once_ns(plan: Plan, memory: DatasetMemory, standing: Standing) -> int:
    """The processor time of a query on accounts in this standing."""
    roomy(memory, charged(memory))
    state_of(memory)  # kept by the writer, and made with it
    if standing is not ROOMY:
        work(plan, memory, drawn)
        standing.set(memory, charged(memory))
    begun = time.thread_time_ns()
    work(plan, memory, drawn)
    return time.thread_time_ns() - begun


def row_of(
    priced: Priced,
    plan: Plan,
    people: int,
    speed: Speed,
    *,
    standing: str,
    work_ns: float,
    schema: Schema,
    shards: int = 1,
) -> Row:
    """The row that puts work beside its price."""
    price = price_ns(plan, schema, people, speed, shards)
    return Row(
        people=people,
        constant=priced.constant,
        data=priced.data,
        standing=standing,
        work_ns=work_ns,
        price_ns=price,
        needed=needed(priced.constant, work_ns, lambda each: price_ns(plan, schema, people, each, shards), speed),
    )


def needed(constant: str, work_ns: float, price: Callable[[Speed], float], speed: Speed) -> float | None:
    """The value of a constant at which the price equals the work; None if the constant is not in the price."""
    if constant not in asdict(speed):
        return None
    value, step = getattr(speed, constant), 1000.0
    each = (price(replace(speed, **{constant: value + step})) - price(speed)) / step
    return value + (work_ns - price(speed)) / each if each > 0 else None


def price_ns(plan: Plan, schema: Schema, people: int, speed: Speed, shards: int = 1) -> float:
    """The public price of the measured work, which leaves out the bytes of the commit."""
    unsent = replace(speed, committed_byte=0.0)
    return cost_of(plan, schema.tables[plan.rows.table], capacity=people, speed=unsent, shards=shards).time_ns


def plan_of(priced: Priced, schema: Schema, people: int) -> Plan:
    """The plan of a query."""
    document = {"version": 1, "select": COUNT, "noise": {"sigma": priced.sigma}, **priced.query}
    query = parse_query(json.dumps(document).encode())
    return compile_query(query, schema, capacity=people, budget_units=UNITS_PER_RHO)


def kept(path: Path | None, shards: int = 1) -> Speed:
    """The constants of a file, or of a new calibration, without those of the commit, which are not needed."""
    if path is not None:
        return Speed(**json.loads(path.read_text()))
    speed = measured_speed(drawn, Commits(empty_ns=0, slow_ns=0, payload_ns=0))
    return speed if shards == 1 else among_shards(speed)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="loadtests.bench_prices", description="Hold work against its price.")
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    parser.add_argument("--shards", type=int, default=1, help="processes of a divided dataset, one page each at least")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes and three repetitions")
    parser.add_argument("--only", default="", help="a part of the name of a constant, or of data")
    parser.add_argument("--speed", type=Path, default=None, help="a kept speed.json, instead of a calibration now")
    parser.add_argument("--json", type=Path, default=None, help="a file for the figures")
    options = parser.parse_args(arguments)
    if options.quick:
        options.people, options.repetitions = QUICK_PEOPLE, 3
    return options


if __name__ == "__main__":
    sys.exit(main())
