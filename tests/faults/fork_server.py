"""A process that has imported the service once and forks a `sparing` command out of itself whenever it is asked to.

A start costs a tenth of a second instead of two, and everything after the imports is what `sparing serve` does. Each
request comes over a socket with the descriptors that are to be the child's stdout and stderr. The children die with
this process, and it with its owner.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Serve requests until the owner is gone; then end every child."""
    for module in ("service.cli.app", "service.run.serve", "service.run.adapters", "service.run.uvicorn_server"):
        importlib.import_module(module)
    gc.freeze()  # a collection in a child would copy every page that they share

    children: set[int] = set()
    with socket.socket(fileno=descriptor) as owner:
        owner.send(b"{}")
        while True:
            message, descriptors, _, _ = socket.recv_fds(owner, 2**16, 2)
            if not message:
                break
            request = json.loads(message)
            owner.send(json.dumps(_answer(request, descriptors, children, owner)).encode())
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _answer(request: Any, descriptors: list[int], children: set[int], owner: socket.socket) -> Any:
    if "wait" in request:
        pid, status = os.waitpid(request["wait"], 0)
        children.discard(pid)
        return {"status": os.waitstatus_to_exitcode(status)}
    child = os.fork()
    if child == 0:
        owner.detach()
        _become(request["arguments"], request["environment"], descriptors)
    for each in descriptors:
        os.close(each)
    children.add(child)
    return {"pid": child}


def _become(arguments: list[str], environment: dict[str, str], descriptors: list[int]) -> NoReturn:
    """The process of `sparing ARGUMENTS` from here on."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["sparing", *arguments]
    from service.cli.app import main as sparing  # noqa: PLC0415 - imported already
    from service.failpoints import arm  # noqa: PLC0415 - the same
    from service.store.postgres.store import PostgresStore  # noqa: PLC0415 - the same

    if environment.get("TRUST_ANY_DATABASE"):  # for settings that lose data, which are to be seen losing them
        PostgresStore.check_durability = lambda _: None  # type: ignore[method-assign, assignment]
    if environment.get("STRETCH_ENTRIES"):
        _shorten_stretches(int(environment["STRETCH_ENTRIES"]))
    if arguments[0] != "serve":  # which arms its drills by itself
        arm(environment, host="127.0.0.1")
    code: Any = 1
    try:
        sparing()
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1 if code else 0)


def _shorten_stretches(entries: int) -> None:
    """So that few entries are several stretches of an erasure's amendments, of one write for each, and of a pruning."""
    from service.maintenance import amend as amend_module  # noqa: PLC0415 - the same
    from service.maintenance import prune as prune_module  # noqa: PLC0415 - the same

    amend_module.STRETCH_ENTRIES = prune_module.STRETCH_ENTRIES = entries  # type: ignore[misc]
    amend_module._AT_ONCE = 1  # type: ignore[misc]


if __name__ == "__main__":
    main(int(sys.argv[1]))
