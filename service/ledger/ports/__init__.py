"""The ports: protocols that the adapters in store implement, and the errors they may raise."""
