"""The settings of the service.

Each setting is declared once, as a field of `Settings`. It is read from one environment variable, a file of secrets or
`.env`. The other modules here hold the types of settings that need checks of their own. Nothing here starts or opens
anything: `service.run` builds the service from the settings.
"""
