"""The HTTP API: a Quart application over the domain packages, which hold every rule."""
