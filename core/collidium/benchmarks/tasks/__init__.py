"""Which tasks a backend offers, and their cards."""
