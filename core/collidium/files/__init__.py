"""Files on local disk: durable writes, locked temporary files, and the data directory."""
