"""Sign-in with an OpenID provider (OAuth's authorization code with PKCE), and protection of forms."""
