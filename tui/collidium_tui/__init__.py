"""The operator console; it talks to the platform through `collidium.client` alone."""
