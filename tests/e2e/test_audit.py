"""`sparing audit` as a sceptic runs it: against a service of its own, against another's, and against one that lies."""

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

from sparing_audit.game import COMPARED
from tests.e2e.processes import SPARING, environment, new_key, served
from tests.rotation import IS_WHOLE, times
from tests.waiting import PATIENCE_S

VICTIMS = times(120, 240)
ONE_ACCOUNTING = [] if IS_WHOLE else ["--accounting", "zcdp"]
"""In the gate one audit is of every rule and the other one of every accounting; in a soak both are of all."""


def audited(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """The command, with few victims."""
    command = [*SPARING, "audit", "--victims", str(VICTIMS), *arguments]
    env = {**environment(), **settings}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=PATIENCE_S, check=False)


@contextmanager
def lying(url: str) -> Iterator[str]:
    """The service behind a proxy that adds a unit to what an account has spent, in the file of accounts alone."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait for the acknowledgement of its head

        def log_message(self, *_: object) -> None:
            pass

        def _forward(self) -> None:
            left_out = {"Host", "Connection", "Accept-Encoding"}  # what is changed comes unpacked
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name not in left_out}
            request = urllib.request.Request(url + self.path, data=body or None, headers=headers, method=self.command)  # noqa: S310 - our own
            try:
                reply = urllib.request.urlopen(request, timeout=PATIENCE_S)  # noqa: S310 - the same
            except HTTPError as refused:
                reply = refused
            content = reply.read()
            if "budgets" in self.path and content.startswith(b"key,"):
                content = content.replace(b",8796093022208,8796093022208,", b",8796093022209,8796093022208,")
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers.get("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _forward  # noqa: N815 - as http.server names them

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_service_of_its_own_passes_and_nothing_is_left(server_directory: Path) -> None:
    """Exit status 0, the verdict in text and JSON, under each rule that is offered; the folder is gone."""
    folder = server_directory / "audits"
    folder.mkdir(mode=0o711)
    out = server_directory / "audit.json"
    done = audited("--out", str(out), "--seed", "3", *ONE_ACCOUNTING, TMPDIR=str(folder))
    report = json.loads(out.read_text(encoding="utf-8"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("passed: 0 of")
    assert report["passed"]
    assert (report["victims"], report["seed"]) == (VICTIMS, 3)
    offered = set(report["offered"]["datasets"]) | set(report["offered"]["queries"])
    assert {rule["rule"] for rule in report["rules"]} == offered >= {"skip", "drop"}
    assert list(folder.iterdir()) == []


def test_a_service_elsewhere_that_lies_fails_by_the_check_that_sees_it(home: Path) -> None:
    """Exit status 1 where accounts say a unit more than was spent, which no other comparison sees; 2 without a key."""
    with served(home, SPARING_RELEASE_SLOT_MS="0") as service:
        key = new_key(home, "curator")
        with lying(service.url) as url:
            wrong = audited("--url", url, "--rule", "skip", SPARING_API_KEY=key)
        stranger = audited("--url", service.url, "--curator-key", "x")

    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    failed = [line.split(maxsplit=1)[1] for line in wrong.stdout.splitlines() if line.startswith("  FAILED")]
    assert [name for name in COMPARED if any(line.startswith(name) for line in failed)] == ["charges"]
    assert wrong.stdout.splitlines()[-1].startswith("FAILED: ")
    assert (stranger.returncode, stranger.stdout) == (2, "")
    assert stranger.stderr.splitlines()[-1].startswith("sparing: 401 ")
