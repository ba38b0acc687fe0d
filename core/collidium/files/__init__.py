"""Files on local disk: written durably, held under a lock, and the data directory."""
