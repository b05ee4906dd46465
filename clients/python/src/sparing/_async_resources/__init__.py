"""One module per noun of the service; each verb is one request."""
