"""Incident: the procedure from the freeze to the refunds."""
