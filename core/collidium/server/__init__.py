"""The server's processes and sockets, and the background work that runs with serving."""
