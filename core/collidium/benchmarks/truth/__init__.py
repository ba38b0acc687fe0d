"""Which version of truth counts: versions, evaluated events."""
