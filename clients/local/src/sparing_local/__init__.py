"""The local model: the device of each individual keeps its own account, and adds noise of its own."""
