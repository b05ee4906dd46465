"""The constants of the client, in one place."""

ENV_URL = "SPARING_URL"
ENV_API_KEY = "SPARING_API_KEY"

TIMEOUT_S = 60.0  # for one try; the server bounds its own work at ten seconds, an upload may take longer
CONNECT_TIMEOUT_S = 5.0
MAX_RETRIES = 4  # five tries in all

# Full jitter: the n-th wait is uniform on [0, min(RETRY_WAIT_MAX_S, RETRY_WAIT_BASE_S * 2**n)], so that clients which
# failed together do not retry together (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
RETRY_WAIT_BASE_S = 0.25
RETRY_WAIT_MAX_S = 8.0
RETRY_AFTER_MAX_S = 30.0  # longest wait that a server's Retry-After can cause

PAGE_SIZE = 500
BATCH_SIZE = 256  # queries in one request; the service takes no more
