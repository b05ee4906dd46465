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

# A server may lie: bounds on what a reply may take here, above what a service sends.
REPLY_BYTES_MAX = 32 * 2**20  # unpacked; the longest answer, of 2^20 numbers, has 20 MB as JSON and 8 in npz
REPLY_CONTAINERS_MAX = (
    2**22
)  # objects and lists in a document; a batch of 256 answers of 10,000 numbers has 2.6 million
REPLY_DEPTH_MAX = 64  # objects and lists within each other; the service takes 16 in a query
BATCH_REPLIES_MAX = 8  # a batch may be as long as so many replies
FILE_BYTES_MAX = 2**33  # of a file of accounts, which comes unpacked
FILE_BYTES_S_MIN = 65_536  # bytes a second that a file is sent or fetched with, beside the time limit of a try
DIMENSION_MAX = 2**20  # numbers in one answer
PAGES_MAX = 100_000  # of one listing
CURSOR_LENGTH_MAX = 1000
TEXT_LENGTH_MAX = 10_000  # of a text in an error
ERRORS_MAX = 100  # fields that an error names

PAGE_SIZE = 500
BATCH_SIZE = 256  # queries in one request; the service takes no more
