"""nginx and haproxy in front of a service, on loopback, with a pool of kept connections as in deploy/nginx.conf."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from loadtests.raw_http import Address

_NGINX: Final = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_max_body_size 0;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream sparing {{ {servers} keepalive 64; keepalive_timeout 3s; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://sparing; proxy_http_version 1.1;
            proxy_set_header Host $http_host; proxy_set_header Connection "";
            proxy_buffering off; proxy_request_buffering off; proxy_next_upstream off;
        }}
    }}
}}
"""
_HAPROXY: Final = """
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 3s
    http-reuse always
frontend outside
    bind 127.0.0.1:{port}
    default_backend sparing
backend sparing
{servers}
"""
FRONTS: Final = ("nginx", "haproxy")


def program(name: str) -> str | None:
    """The path of a front's program; None if it is not installed."""
    return shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


@contextmanager
def fronted(name: str, backends: Sequence[Address], folder: Path) -> Iterator[Address]:
    """Run one of `FRONTS` in front of these addresses; yields its own address."""
    port = free_port()
    if name == "nginx":
        servers = " ".join(f"server {host}:{number};" for host, number in backends)
        config = _NGINX.format(folder=folder, servers=servers, port=port)
        options = ["-p", str(folder), "-c", "front.conf"]
    else:
        servers = "\n".join(f"    server s{n} {host}:{number}" for n, (host, number) in enumerate(backends))
        config, options = _HAPROXY.format(servers=servers, port=port), ["-db", "-q", "-f", str(folder / "front.conf")]
    (folder / "front.conf").write_text(config)
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen([program(name) or name, *options], stderr=subprocess.DEVNULL))
        stack.callback(process.terminate)
        _await_port(("127.0.0.1", port), process)
        yield "127.0.0.1", port


def free_port() -> int:
    """A port of loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _await_port(address: Address, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(address, timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the front did not listen at port {address[1]}")
