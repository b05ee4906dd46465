# The base is pinned by tag only, because looking up its digest takes access to a registry. Where images are built, pin it:
#   docker build --build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:<digest> .
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

# --- build: the locked packages and the service, as one environment that the final stage copies
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /build

# The environment has no pip of its own: the base image's pip fills it. The build backend is removed once the service is installed.
COPY requirements.lock ./
RUN python -m venv --without-pip /opt/sparing \
 && python -m pip --python /opt/sparing/bin/python install --require-hashes --only-binary :all: -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY service ./service
COPY clients/dashboard ./clients/dashboard
RUN python -m pip --python /opt/sparing/bin/python install --no-deps --no-build-isolation --no-index . \
 && python -m pip --python /opt/sparing/bin/python uninstall --yes editables hatchling

# --- final: no compiler, no pip, nothing writable but the home
FROM ${PYTHON_IMAGE} AS final
ENV HOME=/var/lib/sparing \
    PATH=/opt/sparing/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SPARING_HOME=/var/lib/sparing \
    SPARING_MIGRATIONS=/srv/sparing/migrations
RUN python -m pip uninstall --yes setuptools wheel pip
RUN install -d -o 10001 -g 10001 -m 0700 /var/lib/sparing
COPY --from=build /opt/sparing /opt/sparing
WORKDIR /srv/sparing
COPY migrations ./migrations

# A number, so that an orchestrator can see that it is not root without reading /etc/passwd.
USER 10001:10001
VOLUME ["/var/lib/sparing"]
EXPOSE 8000
STOPSIGNAL SIGTERM
# Liveness only: whether the database answers is /readyz, which an orchestrator asks for itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
CMD ["sparing", "serve", "--host", "0.0.0.0", "--port", "8000"]
