"""The verbs of the API, by resource: checks, requests and results, without input or output."""
