"""Plugins that come with the platform, registered like third-party ones."""
