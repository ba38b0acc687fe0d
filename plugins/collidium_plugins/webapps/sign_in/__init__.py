"""Signing in with the hub: OAuth's authorization code with PKCE, and forms of ours alone."""
