"""The compose file for Ray: a head and two workers on a network of their own, with a token and TLS, and one image."""

import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings.settings import VARIABLES
from sparing_ray.shards import check_secrecy
from tests.architecture.source import ROOT

TEXT = (ROOT / "docker-compose.ray.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = sorted(SERVICES.keys() - {"service"})


def command(name: str) -> str:
    """The command line of a container."""
    given = SERVICES[name]["command"]
    return given if isinstance(given, str) else " ".join(given)


def test_a_head_without_shards_two_workers_and_a_node_beside_the_service() -> None:
    """Workers alone have processors for shards."""
    processors = {name: re.findall(r"--num-cpus=(\d+)", command(name)) for name in SERVICES}
    assert processors == {"ray-head": ["0"], "ray-worker-1": ["2"], "ray-worker-2": ["2"], "service": ["0"]}
    assert ["--head" in command(name) for name in sorted(SERVICES)] == [True, False, False, False]


@pytest.mark.parametrize("name", NODES)
def test_each_node_is_locked_down(name: str) -> None:
    """A node has no root, capability or port, like the containers of docker-compose.yml."""
    node = SERVICES[name]
    assert (node["read_only"], node["cap_drop"], node["user"]) == (True, ["ALL"], "10001:10001")
    assert node["security_opt"] == ["no-new-privileges:true"]
    assert node["pids_limit"] > 0
    assert {"mem_limit", "healthcheck"} <= node.keys()
    assert not {"ports", "privileged", "network_mode", "pid", "ipc", "devices", "cap_add"} & node.keys()


def test_nothing_else_is_in_the_network() -> None:
    """It is internal, and each container has the address that its node is told."""
    assert COMPOSE["networks"]["ray"]["internal"] is True
    for name, service in SERVICES.items():
        assert set(service["networks"]) == {"ray"}
        assert f"--node-ip-address={service['networks']['ray']['ipv4_address']} " in command(name)


def test_all_are_one_image_without_dashboard_and_statistics() -> None:
    """So that versions are equal."""
    assert {service["image"] for service in SERVICES.values()} == {"sparing-ray:0.2.0"}
    assert SERVICES["service"]["build"]["args"] == {"LOCK": "requirements-ray.lock"}
    assert "--include-dashboard=false" in command("ray-head")
    for name, service in SERVICES.items():
        assert "--disable-usage-stats" in command(name)
        assert service["environment"]["RAY_USAGE_STATS_ENABLED"] == "0"
        assert service["environment"]["RAY_automatic_object_spilling_enabled"] == "0"


def test_the_first_lines_make_what_a_start_asks_for(tmp_path: Path) -> None:
    """The commands of the head are run: the certificate names each address, and the service accepts the settings."""
    lines = [line.removeprefix("#   ") for line in TEXT.splitlines() if line.startswith("#   ")]
    commands = "\n".join(line for line in lines if "docker compose" not in line)
    (tmp_path / "secrets").mkdir()
    subprocess.run(["sh", "-eu", "-c", commands], cwd=tmp_path, check=True, capture_output=True)
    made = tmp_path / "secrets"
    context = ssl.create_default_context(cafile=str(made / "ray_tls_certificate"))
    (certificate,) = context.get_ca_certs()
    named: Any = certificate["subjectAltName"]
    addresses = {service["networks"]["ray"]["ipv4_address"] for service in SERVICES.values()}
    assert {address for _, address in named} == addresses
    given = SERVICES["service"]["environment"]
    there = {name: text.replace("/run/secrets", str(made)) for name, text in given.items()}
    check_secrecy(given["SPARING_RAY_ADDRESS"], there)
    assert {name for name in given if name.startswith("SPARING_")} <= VARIABLES.keys()
    assert {path.name for path in made.iterdir()} == COMPOSE["secrets"].keys()
