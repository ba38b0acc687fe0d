"""What a hub or a directory has, and downloads of it: whole and checked, into a cache or a folder."""
