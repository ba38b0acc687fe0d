"""The hub as an OpenID provider: users let an application act for them without giving it their token.

RFC 6749 with the rules of RFC 9700: codes alone, PKCE always (RFC 7636), exact addresses to return to, and
nothing can be used twice.
"""
