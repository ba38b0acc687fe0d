"""Signing in with an OpenID provider: OAuth's authorization code with PKCE, and forms of ours alone."""
