"""The hub's protocol as a client: lists, ranges, downloads, commits, models, whoami, the saved login."""
