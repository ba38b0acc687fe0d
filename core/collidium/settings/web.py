"""Settings of the web pages: addresses, sign-in and the event display."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints, field_validator
from pydantic_settings import BaseSettings

from collidium.settings.values import COMMA_SEPARATED, MEBIBYTE, CommaList

#: A group of single sign-on, and a scope of operators for its members.
OperatorGroup = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*=(all|accounts|benchmarks|reports|simulations)$")
]


class WebSettings(BaseSettings):
    """Settings of the web pages."""

    public_url: str = Field(
        "",
        pattern=r"^(https?://[^/?#@\s]+/?)?$",
        description="Public address of the pages, such as https://collidium.example.org; empty: the address "
        "of the request.",
    )
    oauth_client_id: str = Field(
        "collidium-web",
        min_length=1,
        description="OAuth client id of the pages at the hub.",
    )
    oauth_client_secret: SecretStr | None = Field(
        None, description="OAuth client secret at the hub; not set: a public client with PKCE."
    )
    oauth_scopes: CommaList = Field(("openid", "profile"), description="OAuth scopes of signing in.")
    oauth_order_scopes: CommaList = Field(
        ("manage-repos",),
        description="Additional OAuth scopes of ordering events, which become a repository of the account.",
    )
    oauth_link_scopes: CommaList = Field(
        ("read-repos",), description="Additional OAuth scopes of linking a private model."
    )
    oauth_redirect_uris: CommaList = Field(
        (),
        description="Additional redirect URIs of the local hub, for pages at other addresses, ending in "
        "/web/callback.",
    )
    oidc_issuer: str = Field(
        "",
        max_length=255,
        pattern=r"^(https://[^?#@\s]+|http://(127\.0\.0\.1|localhost)(:\d+)?(/[^?#@\s]*)?)?$",
        description="Issuer of an additional OpenID provider for signing in on the pages, such as "
        "https://sso.example.org/realms/lab; empty: none.",
    )
    oidc_client_id: str = Field(
        "collidium", min_length=1, description="Client id of the pages at that provider."
    )
    oidc_client_secret: SecretStr | None = Field(
        None, description="Client secret at that provider; not set: a public client with PKCE."
    )
    oidc_scopes: CommaList = Field(
        ("openid", "profile"),
        description="Scopes at that provider; some providers need `groups`, and domains need `email`.",
    )
    oidc_groups_claim: str = Field(
        "groups", description="Claim of the ID token with the user's groups, which challenges can admit."
    )
    oidc_operators: Annotated[tuple[OperatorGroup, ...], *COMMA_SEPARATED] = Field(
        (),
        description="Groups whose members are operators, each with a scope: "
        "lab-admins=all,helpdesk=accounts,helpdesk=reports.",
    )
    session_idle_hours: float = Field(
        24, gt=0, le=24 * 31, description="Maximum time of a session without opening a page."
    )
    session_hours: float = Field(24 * 7, gt=0, le=24 * 31, description="Maximum time of a session.")
    sign_ins_per_minute: int = Field(
        20, ge=1, le=10_000, description="Maximum sign-ins begun from an address per minute."
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        le=10,
        description="Number of proxies in front of the server whose X-Forwarded-For is trusted.",
    )

    docs_url: str = Field(
        "", description="Documentation, linked in the footer; empty: /guide, if it is installed."
    )
    source_url: str = Field("", description="Source code, linked in the footer.")
    citation_url: str = Field("", description="How to cite the platform, linked in the footer.")
    contact_url: str = Field("", description="Contact, linked in the footer: https:// or mailto:.")
    data_license: str = Field("", description="Licence of the datasets, shown in the footer.")

    @field_validator("docs_url", "source_url", "citation_url", "contact_url")
    @classmethod
    def _linkable(cls, value: str) -> str:
        if value and not value.startswith(("https://", "http://", "mailto:", "/")):
            raise ValueError("must begin with https://, http://, mailto: or /")
        return value

    @field_validator("public_url")
    @classmethod
    def _bare_origin(cls, value: str) -> str:
        return value.rstrip("/")


class DisplaySettings(BaseSettings):
    """Settings of the event display."""

    event_bytes: int = Field(
        48 * MEBIBYTE,
        ge=MEBIBYTE,
        le=64 * MEBIBYTE,
        description="Maximum size of an event that is shown.",
    )
    event_read_bytes: int = Field(
        256 * MEBIBYTE, ge=MEBIBYTE, description="Maximum bytes of a dataset that are read to show an event."
    )
    event_cache_bytes: int = Field(
        64 * MEBIBYTE, ge=0, description="Size of a server process's cache of events."
    )
