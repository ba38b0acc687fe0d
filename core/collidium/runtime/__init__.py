"""What any long-running process needs: logs, threads, backoff, wake signals, failpoints, HTTP clients."""
