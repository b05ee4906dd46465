"""How a process starts, serves and stops: listening sockets, adapters, the web server, workers, the demo."""
