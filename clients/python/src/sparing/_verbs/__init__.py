"""The calls of the API, by resource: they check arguments and make requests and results, but do no input or output."""
