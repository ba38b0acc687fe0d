"""Runners that come with the platform, each registered like anybody's."""
