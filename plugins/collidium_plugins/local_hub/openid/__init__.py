"""The hub as an OpenID provider: people allow an application to act for them, without giving it their token.

RFC 6749 with the rules of RFC 9700: codes alone, PKCE always (RFC 7636), exact addresses to return to, and
what has been used once is worth nothing a second time.
"""
