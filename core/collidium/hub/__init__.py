"""The protocol of the hub as a client: lists, ranges, commits, model cards, the saved login."""
