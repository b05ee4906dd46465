"""The demo: the replica on embedded servers, and the client's demo, which talks to it over HTTP alone."""

from service.run.listening import stay_until_asked
from service.run.serve import serving
from service.settings.settings import Settings

OUT = "demo"  # the folder of the home in which the demo's files lie
INSTALLING = "run `make demo` in a clone of the repository, or install `sparing[demo]` and `sparing-client`"


class DemoFailed(Exception):
    """The demo could not be run to its end; the message says why in one line."""


def demo(settings: Settings, *, host: str, port: int, stay: bool) -> None:
    """Run the demo once; with `stay`, serve on until a signal comes. Raises DemoFailed, OSError."""
    try:
        from rich.console import Console  # noqa: PLC0415 - the production image lacks the demo and its packages

        from sparing import SparingError  # noqa: PLC0415 - the same
        from sparing_demo import NotTheDemo, run_demo  # noqa: PLC0415 - the same
    except ImportError as error:
        raise DemoFailed(f"the demo needs {error.name}: {INSTALLING}") from error

    console = Console()
    console.print("Starting Postgres, Valkey and the service …")
    with serving(settings, host=host, port=port) as (url, replica):
        _, curator_key = replica.principals.create(role="curator", name="demo curator")
        try:
            report = run_demo(base_url=url, curator_key=curator_key, out_dir=settings.home / OUT)
        except (SparingError, NotTheDemo) as error:
            raise DemoFailed(str(error)) from error
        if stay:
            rows = {"curator": curator_key, "analyst": report.keys.analyst, "individual": report.keys.individual}
            console.print(f"\nServing at [bold]{url}[/bold] until Ctrl-C. Keys, shown only now:")
            for role, key in rows.items():
                console.print(f"  {role:<11}{key}", soft_wrap=True, highlight=False)
            stay_until_asked()
