"""Clients of a hub: whoami, lists, byte ranges, downloads, commits, models, cards, and the saved login."""
