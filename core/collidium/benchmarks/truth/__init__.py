"""Which version of truth counts: versions, phases, evaluated events."""
