"""A directory published as a repository of a hub: looked through, truth withheld, whole or not at all."""
