"""Building blocks of long-running processes: logs, threads, retries, subprocesses, networks, HTTP clients."""
