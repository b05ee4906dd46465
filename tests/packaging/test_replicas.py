"""The compose file for several replicas changes what one replica cannot share with another, and nothing else."""

import socket
from typing import Any

import yaml

from service.run.listening import host_and_port
from service.settings.settings import Settings
from tests.architecture.source import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
TEXT = (ROOT / "docker-compose.replicas.yml").read_text(encoding="utf-8")


def test_each_replica_has_a_port_of_its_own_on_this_machine() -> None:
    """The one published port is replaced, not added to, by a range on the loopback address."""
    assert "ports: !override " in TEXT
    replicas = yaml.safe_load(TEXT.replace("!override", ""))
    assert replicas["services"].keys() == {"service"}
    service = replicas["services"]["service"]
    assert service["ports"] == ["127.0.0.1:8000-8009:8000", "127.0.0.1:9100-9109:9100"]
    assert service.keys() == {"ports", "environment"}


def test_each_replica_is_reached_by_the_others_under_its_own_name() -> None:
    """At a port that this machine does not publish, of a container that the others can look up."""
    service = yaml.safe_load(TEXT.replace("!override", ""))["services"]["service"]
    assert service["environment"].keys() == {"SPARING_FORWARD_URL"}
    settings = Settings.of(service["environment"], home=ROOT)
    host, port = host_and_port(settings.forward_url)
    assert host == socket.gethostname().lower()
    assert port not in {8000, 0}


def test_nothing_else_of_the_service_is_for_one_alone() -> None:
    """No name, host name or address is fixed, and servers, pepper and witness are those that the replicas share."""
    service = COMPOSE["services"]["service"]
    assert not {"container_name", "hostname", "deploy"} & set(service)
    assert all(network in COMPOSE["networks"] for network in service["networks"])
    assert {"DATABASE_URL_FILE", "REDIS_URL_FILE", "SPARING_PEPPER_FILE"} <= set(service["environment"])
    assert "witness:/var/lib/sparing-witness" in service["volumes"]  # locked by a process that appends
