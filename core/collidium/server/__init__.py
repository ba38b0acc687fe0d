"""Server processes, their sockets, and the background work in them."""
