"""The built-in runners, registered like third-party ones."""
