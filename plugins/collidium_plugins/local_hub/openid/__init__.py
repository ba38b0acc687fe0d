"""The hub as an OpenID provider: the authorization code flow of RFC 6749 as restricted by RFC 9700.

PKCE (RFC 7636) is required, redirect URIs are compared exactly, and codes and refresh tokens are used once.
"""
