"""The whole benchmark loop on real events, on one machine: ``collidium demo``."""
