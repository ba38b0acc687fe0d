"""What organisers and the calendar do with a challenge: create, change, close and end it; its roster."""

__all__ = ["changes", "closing", "roster"]
