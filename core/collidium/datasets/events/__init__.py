"""One event at a time, to be shown: found by footers, read in place, sent as Arrow or for Phoenix."""
