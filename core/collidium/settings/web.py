"""Settings of the pages: signing in, and the event display."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints, field_validator
from pydantic_settings import BaseSettings, NoDecode

from collidium.settings.values import MEBIBYTE, CommaList, words

#: A group of single sign-on and one scope of operators.
OperatorGroup = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*=(all|accounts|benchmarks|reports|simulations)$")
]


class WebSettings(BaseSettings):
    """How browsers reach the platform, and how people sign in there."""

    public_url: str = Field(
        "",
        pattern=r"^(https?://[^/?#@\s]+/?)?$",
        description="Address under which browsers reach the pages, such as https://collidium.example.org; "
        "empty: whichever they asked for.",
    )
    oauth_client_id: str = Field(
        "collidium-web",
        min_length=1,
        description="Name under which the hub knows the pages as an application.",
    )
    oauth_client_secret: SecretStr | None = Field(
        None, description="Secret of that application; not set: a public client, protected by PKCE alone."
    )
    oauth_scopes: CommaList = Field(("openid", "profile"), description="What signing in asks the hub for.")
    oauth_order_scopes: CommaList = Field(
        ("manage-repos",),
        description="What ordering events asks for in addition: they become a repository of the account.",
    )
    oauth_link_scopes: CommaList = Field(
        ("read-repos",), description="What linking a private model asks for in addition."
    )
    oauth_redirect_uris: CommaList = Field(
        (),
        description="Addresses in addition to its own to which the local hub redirects after a sign-in: "
        "those of pages that are served apart, ending in /web/callback.",
    )
    oidc_issuer: str = Field(
        "",
        max_length=255,
        pattern=r"^(https://[^?#@\s]+|http://(127\.0\.0\.1|localhost)(:\d+)?(/[^?#@\s]*)?)?$",
        description="OpenID provider that signs people in on the pages, in addition to the hub, as it calls "
        "itself, such as https://sso.example.org/realms/lab; empty: none.",
    )
    oidc_client_id: str = Field("collidium", min_length=1, description="Client id of the pages there.")
    oidc_client_secret: SecretStr | None = Field(
        None, description="Client secret there; not set: a public client, protected by PKCE alone."
    )
    oidc_scopes: CommaList = Field(
        ("openid", "profile"),
        description="What that provider is asked for; some need `groups`, too, and domains `email`.",
    )
    oidc_groups_claim: str = Field(
        "groups", description="Claim of the id token with the user's groups, which challenges can admit."
    )
    oidc_operators: Annotated[tuple[OperatorGroup, ...], NoDecode] = Field(
        (),
        description="Groups there whose members are operators, each with a scope: "
        "lab-admins=all,helpdesk=accounts,helpdesk=reports.",
    )
    session_idle_hours: float = Field(
        24, gt=0, le=24 * 31, description="How long a session lasts without opening a page."
    )
    session_hours: float = Field(24 * 7, gt=0, le=24 * 31, description="How long a session lasts at most.")
    sign_ins_per_minute: int = Field(
        20, ge=1, le=10_000, description="Beginnings of a sign-in taken from one address in a minute."
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        le=10,
        description="Proxies in front of the server, one behind another, whose X-Forwarded-For is trusted.",
    )

    docs_url: str = Field(
        "", description="Documentation, linked at the foot of pages; empty: /guide, where it is installed."
    )
    source_url: str = Field("", description="Source code, linked at the foot of pages.")
    citation_url: str = Field("", description="How to cite the platform, linked at the foot of pages.")
    contact_url: str = Field("", description="Whom to ask, linked at the foot of pages: https:// or mailto:.")
    data_license: str = Field("", description="Licence of the datasets, named at the foot of pages.")

    @field_validator("docs_url", "source_url", "citation_url", "contact_url")
    @classmethod
    def _linkable(cls, value: str) -> str:
        if value and not value.startswith(("https://", "http://", "mailto:", "/")):
            raise ValueError("must begin with https://, http://, mailto: or /")
        return value

    @field_validator(
        "oauth_scopes",
        "oauth_order_scopes",
        "oauth_link_scopes",
        "oauth_redirect_uris",
        "oidc_scopes",
        "oidc_operators",
        mode="before",
    )
    @classmethod
    def _split_words(cls, value: object) -> object:
        return words(value)

    @field_validator("public_url")
    @classmethod
    def _bare_origin(cls, value: str) -> str:
        return value.rstrip("/")


class DisplaySettings(BaseSettings):
    """How single events of datasets are shown."""

    event_bytes: int = Field(
        48 * MEBIBYTE,
        ge=MEBIBYTE,
        le=64 * MEBIBYTE,
        description="Largest event that is shown, as it is sent.",
    )
    event_read_bytes: int = Field(
        256 * MEBIBYTE, ge=MEBIBYTE, description="Maximum bytes of a dataset that are read to show an event."
    )
    event_cache_bytes: int = Field(
        64 * MEBIBYTE, ge=0, description="Memory of a server process for events that were shown before."
    )
