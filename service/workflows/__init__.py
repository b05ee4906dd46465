"""The use cases of the service and the ports that they need: register, append, answer, read, erase, verify."""
