"""One module per resource of an `AsyncClient`: the methods of `_resources`, awaited."""
