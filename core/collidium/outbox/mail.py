"""Events as e-mail: their texts, and an attempt to send one to the mail server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from collidium.outbox import recipients
from collidium.outbox.events import CONFIRM, TYPES
from collidium.outbox.recipients import Link
from collidium.outbox.sending import SendingOutcome
from collidium.runtime.logs import single_line

if TYPE_CHECKING:
    from collidium.outbox.deliveries import Attempt
    from collidium.secrets import Secrets
    from collidium.settings import Settings

#: The path of links. Their token is in the query, which is never logged.
LINK_PATH: Final = "/mail"
#: Long lines are not folded, as Python would encode the URLs of links unreadably.
_POLICY: Final = SMTP.clone(max_line_length=900, cte_type="7bit")
#: How long to wait for the response to QUIT.
_QUIT_SECONDS: Final = 1.0
#: SMTP codes from this one on are permanent.
_PERMANENT: Final = 500
#: Rejections that concern the recipient's address (RFC 3463: no such mailbox or domain, or disabled), and the
#: codes that do if there is no such status. With others, a relay rejects all recipients.
_STATUS: Final = re.compile(r"\d\.\d+\.\d+")
_ADDRESS_STATUS: Final = re.compile(r"5\.(1\.([1-6]|10)|2\.1)")
_ADDRESS_CODES: Final = frozenset({550, 551, 553})


class Mailer:
    """Sends e-mail through the server of the settings."""

    def __init__(self, settings: Settings, secrets: Secrets) -> None:
        self._server = settings.mail_server
        self._from = settings.mail_from
        self._seconds = settings.webhook_timeout_seconds
        self._url = settings.public_url or settings.base_url
        self._secrets = secrets

    async def send(self, attempt: Attempt, address: str) -> SendingOutcome:
        """Send an event to an address. Failures are returned, not raised."""
        # Imported here, as most commands and servers send no e-mail.
        from aiosmtplib import SMTP, SMTPDataError, SMTPException, SMTPRecipientsRefused

        server = self._server
        if server is None:
            return SendingOutcome(None, "this server sends no e-mail any more", final=True)
        message = self._message(attempt, address)
        client = SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            local_hostname=urlsplit(self._url).hostname,
            use_tls=server.tls,
            start_tls=True if server.password and not server.tls else None,
            timeout=self._seconds,
        )
        sender = message["From"].addresses[0].addr_spec
        try:
            async with asyncio.timeout(self._seconds):
                await client.connect()
                await client.sendmail(sender, [address], message.as_bytes(policy=_POLICY))
        except SMTPRecipientsRefused as error:
            code = error.recipients[0].code
            if code < _PERMANENT:
                return SendingOutcome(code, "the mail server does not take the address now")
            if not _is_about_address(code, error.recipients[0].message):
                return SendingOutcome(code, "the mail server could not be used", ours=True)
            await recipients.rejected(attempt.row.account_id, address)
            return SendingOutcome(code, "the mail server rejects the address", final=True)
        except SMTPDataError as error:
            return SendingOutcome(
                error.code, "the mail server rejects the message", final=error.code >= _PERMANENT
            )
        except (SMTPException, OSError, ValueError) as error:
            # Not its message, which may contain a password or an address.
            cause = f"{type(error).__name__} {getattr(error, 'code', '')}".rstrip()
            return SendingOutcome(None, "the mail server could not be used", cause, ours=True)
        finally:
            # Separate from the above: an accepted message is sent, however the connection ends.
            with suppress(SMTPException, OSError):
                await client.quit(timeout=_QUIT_SECONDS)
            client.close()
        await recipients.accepted(attempt.row.account_id)
        return SendingOutcome(None, None)

    def _message(self, attempt: Attempt, address: str) -> EmailMessage:
        event = json.loads(attempt.row.event.body)
        message = EmailMessage(policy=_POLICY)
        message["From"] = self._from
        message["To"] = Address(addr_spec=address)
        message["Date"] = attempt.row.created_at
        domain = message["From"].addresses[0].domain
        message["Message-ID"] = f"<{attempt.row.event_id}.{attempt.row.id}@{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        subject, lines = _TEXTS[event["type"]](event["data"])
        message["Subject"] = single_line(subject)
        if event["type"] == CONFIRM:
            foot = self._link("confirm", attempt, address)
        else:
            link = self._link("unsubscribe", attempt, address)
            message["List-Unsubscribe"] = f"<{link}>"
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
            if name := event["data"].get("challenge") or event["data"].get("name"):
                lines.append(f"{self._url}/leaderboard/{quote(name)}")
            foot = f"-- \nTo receive no e-mail any more: {link}"
        message.set_content("\n".join([*map(_printable, lines), "", foot]) + "\n")
        return message

    def _link(self, action: recipients.Action, attempt: Attempt, address: str) -> str:
        link = Link(action, attempt.row.account_id, address)
        token = recipients.token_for(link, self._secrets, attempt.row.created_at)
        return f"{self._url}{LINK_PATH}?token={token}"


def _is_about_address(code: int, message: str) -> bool:
    if status := _STATUS.match(message):
        return _ADDRESS_STATUS.fullmatch(status[0]) is not None
    return code in _ADDRESS_CODES


def _printable(line: str) -> str:
    """Replace control characters in a user's text, so that it stays on one line."""
    return "".join(character if character.isprintable() else " " for character in line)


# -- texts -------------------------------------------------------------------------------------------------

Text = tuple[str, list[str]]


def _confirm(_: Mapping[str, Any]) -> Text:
    return "Confirm your e-mail address", [
        "Notifications of submissions, challenges and jobs were requested for this address. Nothing is sent",
        "to it before you follow this link, which is valid for three days. If you did not request them, do",
        "nothing.",
    ]


def _scored(data: Mapping[str, Any]) -> Text:
    scores = [f"{metric}: {value:.6g}" for metric, value in data["scores"].items() if value is not None]
    return f"{data['challenge']}: your submission was scored", [
        f"Submission {data['submission_id']} to {data['challenge']}:",
        "",
        *scores,
        f"credits earned: {data['credits_earned']}",
        *(f"warning: {warning}" for warning in data["warnings"]),
    ]


def _disqualified(data: Mapping[str, Any]) -> Text:
    return f"{data['challenge']}: your submission was disqualified", [
        f"Submission {data['submission_id']} to {data['challenge']} has no rank any more:",
        data["unranked"],
    ]


def _of_challenge(subject: str, text: str) -> Callable[[Mapping[str, Any]], Text]:
    def written(data: Mapping[str, Any]) -> Text:
        closes = str(data["closes_at"])[:16].replace("T", " at ")
        filled = {"title": data["title"], "closes": f"{closes} UTC"}
        return subject.format(**filled), [text.format(**filled)]

    return written


def _job(data: Mapping[str, Any]) -> Text:
    lines = [f"Request {data['request_id']}: {data['state']}"]
    if reason := data.get("reason"):
        lines.append(f"reason: {reason}")
    if repository := data.get("output_hub_repo"):
        lines.append(f"output: {repository}")
    return f"Your simulation request has {data['state']}", lines


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Text]]] = {
    CONFIRM: _confirm,
    TYPES["scored"]: _scored,
    TYPES["disqualified"]: _disqualified,
    TYPES["deadline"]: _of_challenge("{title} closes on {closes}", "Submissions are taken until {closes}."),
    TYPES["closed"]: _of_challenge("{title} has closed", "It took submissions until {closes}."),
    TYPES["results"]: _of_challenge("{title} has its final results", "The final results are published."),
    TYPES["job"]: _job,
}
