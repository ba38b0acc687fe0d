"""Shards of this machine, read as tables: by blocks of events, in bounded memory."""
