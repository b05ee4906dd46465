"""Constructs by which data would become code, markup, a command or a number that can be guessed: none is used.

Where the service has a safe form of one, such as a program that is started by a list of words, the rule says so.
"""

import ast
import re

import pytest

from tests.architecture.rules import Rule, imports
from tests.architecture.source import Module, calls, module, modules, nodes, texts

SERVED = ("service", "migrations", "clients/python/src", "clients/ray/src")
MODULES = {
    "code or objects made of bytes": "pickle cPickle dill marshal shelve jsonpickle yaml code codeop runpy",
    "XML, whose entities read files": "xml lxml defusedxml xmlrpc",
    "a language of templates": "jinja2 mako chevron",
    "mail or a directory": "smtplib imaplib poplib ldap ldap3",
}
MAY_USE = {"service/store/shards/messages.py": {"pickle"}}
"""Between processes that one service has started, over sockets that no other has, and for known classes alone."""
GUESSABLE = "random"
"""Numbers that can be guessed; the client waits by them and makes dummy data, the service has no use for them."""
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.tempnam", "tempfile.mktemp"}
CALLS |= {
    "commands.getoutput",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "uuid.uuid1",
    "numpy.load",
    "np.load",
}
OF_PATTERNS = {f"re.{name}" for name in "compile match fullmatch search sub subn split findall finditer".split()}
WEAK_HASHES = {"md5", "sha1", "md4", "ripemd160", "new"}
MARKUP = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|DOMParser|srcdoc|document\.write|eval"
    r"|postMessage|localStorage|sessionStorage|indexedDB|__proto__|document\.cookie)\b|\bnew Function\b"
)


def forbidden_modules(found: Module) -> list[str]:
    """No module that makes code, objects, markup or guessable numbers out of bytes."""
    names = {name for listed in MODULES.values() for name in listed.split()}
    names |= set() if found.path.startswith("clients/") else {GUESSABLE}
    names -= MAY_USE.get(found.path, set())
    return [f"{found.path}:{line} imports {name}" for line, name in imports(found) if name.split(".")[0] in names]


def forbidden_calls(found: Module) -> list[str]:
    """No evaluation of text, no shell, no file of a guessable name, no array that may hold objects."""
    return [
        f"{found.path}:{call.lineno} calls {name}" for call, name in calls(found) if name in CALLS or _has_shell(call)
    ]


READS_OF_BODIES = {"json", "body", "stream", "form"}
MAY_READ_BODIES = {
    "service/api/bodies.py": {"stream"},
    "service/api/uploads.py": {"stream"},  # a file, spooled and counted
    "service/api/read_slots.py": {"body"},  # kept until the turn of the request has come
    "service/api/query_requests.py": {"body"},  # an npz, with memory held for it
}
READS_OF_JSON = {"json.loads", "json.load", "orjson.loads", "from_json"}
MAY_READ_JSON = {
    "service/api/responses.py",  # stored answers
    "service/api/openapi.py",  # a file of its own
    "service/api/openapi_schemas.py",  # a copy of its own document
}


def bodies_read_elsewhere(found: Module) -> list[str]:
    """A request's body is read by `service.api.bodies` alone: bounded, strict, and as work of its principal.

    Four connections with bodies that FastAPI parsed in the event loop held everybody up for seconds, and of two equal
    members the last one won.
    """
    reads = READS_OF_BODIES - MAY_READ_BODIES.get(found.path, set())
    is_api = found.path.startswith("service/api/") and found.path not in MAY_READ_JSON
    return [
        f"{found.path}:{call.lineno} calls {name}"
        for call, name in calls(found)
        if name in {f"request.{read}" for read in reads} or (is_api and name in READS_OF_JSON)
    ]


def patterns_from_data(found: Module) -> list[str]:
    """A pattern is a constant of the module, never a text that came from elsewhere."""
    constants = {
        target.id
        for node in found.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    return [
        f"{found.path}:{call.lineno} makes a pattern of {ast.unparse(call.args[0])}"
        for call, name in calls(found)
        if name in OF_PATTERNS and not _is_constant(call.args[0], constants)
    ]


def weak_hashes(found: Module) -> list[str]:
    """Every hash is one of SHA-2 or BLAKE2, by its own name, but for one that says that nothing depends on it."""
    unused = {
        id(call.func)
        for call, _ in calls(found)
        if any(each.arg == "usedforsecurity" and ast.unparse(each.value) == "False" for each in call.keywords)
    }
    return [
        f"{found.path}:{node.lineno} names {ast.unparse(node)}"
        for node in nodes(found)
        if (
            id(node) not in unused
            and (isinstance(node, ast.Attribute) and node.attr in WEAK_HASHES and ast.unparse(node.value) == "hashlib")
        )
        or (isinstance(node, ast.Constant) and node.value in WEAK_HASHES - {"new"})
    ]


def _has_shell(call: ast.Call) -> bool:
    return any(each.arg == "shell" and ast.unparse(each.value) != "False" for each in call.keywords)


def _is_constant(node: ast.expr, constants: set[str]) -> bool:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names <= constants and not any(isinstance(each, ast.Call) for each in ast.walk(node))


RULES: list[Rule] = [forbidden_modules, forbidden_calls, bodies_read_elsewhere, patterns_from_data, weak_hashes]


@pytest.mark.parametrize("root", SERVED)
@pytest.mark.parametrize("rule", RULES)
def test_no_data_becomes_code(rule: Rule, root: str) -> None:
    """In the service, the migrations and the client."""
    assert [complaint for found in modules(root) for complaint in rule(found)] == []


def test_no_script_of_the_pages_makes_markup_or_keeps_data() -> None:
    """Elements are made one by one, and their texts are texts; nothing is kept in the browser."""
    scripts = [(path, text) for path, text in texts() if re.fullmatch(r"clients/dashboard/[\w-]+\.js", path)]
    assert len(scripts) > 20
    assert [f"{path} {name}" for path, text in scripts for name in MARKUP.findall(text)] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (forbidden_modules, "from xml.etree import ElementTree"),
        (forbidden_modules, "def f():\n import pickle"),
        (forbidden_modules, "import random"),
        (forbidden_calls, "eval(text)"),
        (forbidden_calls, "np.load(file)"),
        (forbidden_calls, "subprocess.run(text, shell=True)"),
        (bodies_read_elsewhere, "async def f(request):\n await request.json()"),
        (bodies_read_elsewhere, "async def f(request):\n async for part in request.stream():\n  pass"),
        (patterns_from_data, "re.search(text, 'a')"),
        (patterns_from_data, "re.compile(f'{text}$')"),
        (weak_hashes, "hashlib.md5(text)"),
        (weak_hashes, "hashlib.sha1(text, usedforsecurity=False) + hashlib.sha1(text)"),
        (weak_hashes, "hmac.new(key, text, 'sha1')"),
    ],
)
def test_each_rule_bites(rule: Rule, text: str) -> None:
    """A planted offence draws one complaint."""
    (complaint,) = rule(module("service/here.py", text))
    assert complaint.startswith("service/here.py:")


def test_the_scripts_rule_bites() -> None:
    """Each name is found, and words that only contain one are not."""
    assert MARKUP.findall("node.innerHTML = text; eval(text); evaluate(text)") == ["innerHTML", "eval"]
