"""The HTTP API: a Quart application on top of the domain packages."""
