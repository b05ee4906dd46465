"""The unit for systemd and the proxy with TLS, read and, where the programs are here, checked by them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings.settings import SECRETS, VARIABLES, Settings
from tests.architecture.source import ROOT

UNIT = (ROOT / "deploy" / "sparing.service").read_text(encoding="utf-8")
NGINX = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
PROXY: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.tls.yml").read_text(encoding="utf-8"))
needs = pytest.mark.skipif


def directives(section: str) -> dict[str, list[str]]:
    """The directives of a section of the unit, each with its values in their order."""
    lines = UNIT.partition(f"[{section}]\n")[2].partition("\n[")[0].splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        if line and line[0] != "#":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_starts_again_what_ends_with_an_error_and_lets_it_drain() -> None:
    """Its exit status says whether it ended in order; the signal goes to the service alone, with time to answer."""
    service, settings = directives("Service"), Settings.of({})
    (stop,) = service["TimeoutStopSec"]
    assert (service["Restart"], service["KillMode"]) == (["on-failure"], ["mixed"])
    assert int(stop.removesuffix("s")) > (settings.drain_notice_ms + settings.drain_ms) / 1000 + 5 + 60


def test_the_unit_gives_settings_that_are_known_and_secrets_as_files() -> None:
    """Also in the lines for servers of one's own; no secret is in the unit, nor in the environment."""
    given = re.findall(r"^#?Environment=(\w+)=(.*)$", UNIT, re.MULTILINE)
    assert {name for name, _ in given} <= VARIABLES.keys() | {f"{variable}_FILE" for variable in SECRETS}
    assert {name for name, _ in given if name.endswith("_FILE")} == {
        "SPARING_PEPPER_FILE",
        "DATABASE_URL_FILE",
        "REDIS_URL_FILE",
    }
    assert [name for name, value in given if name.endswith("_FILE") and not value.startswith("%d/")] == []
    assert [name for name, _ in given if name in SECRETS] == []


@needs(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_accepts_the_unit_and_finds_it_shut_off(tmp_path: Path) -> None:
    """No unknown directive, no bad value; its rating of what the service could still do is good."""
    unit = tmp_path / "sparing.service"
    unit.write_text(UNIT.replace("/opt/sparing/bin/sparing", sys.executable), encoding="utf-8")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-300:]


def test_the_proxy_is_locked_down_and_reaches_the_service_alone() -> None:
    """It has the certificate and the key as files, and publishes the port of HTTPS."""
    (name, proxy), *others = PROXY["services"].items()
    assert (name, others) == ("proxy", [])
    assert (proxy["read_only"], proxy["cap_drop"], proxy["networks"]) == (True, ["ALL"], ["edge"])
    assert proxy["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", proxy["user"])
    assert re.fullmatch(r"nginx:\d+\.\d+\.\d+", proxy["image"])
    assert proxy["ports"] == ["443:8443"]
    assert PROXY["secrets"] == {name: {"file": f"secrets/{name}"} for name in proxy["secrets"]}


def test_the_proxy_speaks_recent_tls_and_says_so_for_a_year() -> None:
    """It listens for nothing else, and each answer, an error too, tells browsers to come by TLS."""
    (age,) = re.findall(r'add_header Strict-Transport-Security "max-age=(\d+)" always;', NGINX)
    assert re.findall(r"listen (.*);", NGINX) == ["8443 ssl"]
    assert re.findall(r"ssl_protocols (.*);", NGINX) == ["TLSv1.2 TLSv1.3"]
    assert int(age) >= 365 * 24 * 3600
    assert len(re.findall("add_header", NGINX)) == 1  # one within a location would take the place of those around it


def test_the_proxy_logs_no_path_and_waits_longer_than_the_service() -> None:
    """Paths may hold keys of individuals; the probes are not for those outside."""
    (log_format,) = re.findall(r"log_format discreet '(.*)';", NGINX)
    (timeout,) = re.findall(r"proxy_read_timeout (\d+)s;", NGINX)
    hidden = re.findall(r"location = (/\w+) \{\s+return 404;", NGINX)
    assert not re.search(r"\$(request|uri|request_uri|args|document_uri)\b", log_format)
    assert re.findall(r"(?:access|error)_log (.*);", NGINX) == ["/dev/stderr crit", "/dev/stdout discreet"]
    assert int(timeout) * 1000 > Settings.of({}).request_deadline_ms
    assert hidden == ["/livez", "/readyz"]
