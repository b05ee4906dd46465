"""One module for each kind of resource of the service, such as datasets; most methods are one request."""
