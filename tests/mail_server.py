"""A mail server on loopback that keeps what it takes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from threading import Event, Thread
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class MailServer:
    """What arrived, in order, and how recipients are answered; messages once ``open`` is set."""

    port: int = 0
    messages: list[EmailMessage] = field(default_factory=list)
    answer: Callable[[str], str] = lambda _: "250 OK"
    open: Event = field(default_factory=Event)
    #: Whether it ends a connection when it is asked to.
    ends: bool = True
    #: Set when the server is to end.
    stop: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def subjects(self) -> list[str]:
        return [str(message["Subject"]) for message in self.messages]

    async def handle_RCPT(  # noqa: N802 -- its name there
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.answer(address)
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(  # noqa: N802 -- its name there
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        assert [message["To"]] == envelope.rcpt_tos, "one e-mail for each person"
        self.messages.append(message)
        await asyncio.to_thread(self.open.wait, 30)
        return "250 OK"

    async def handle_QUIT(  # noqa: N802 -- its name there
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if not self.ends:
            await asyncio.to_thread(self.stop.wait)
        return "221 Bye"


@contextmanager
def taking_mail(**options: Any) -> Iterator[MailServer]:
    """A mail server in a thread; ``options`` are those of aiosmtpd."""
    mail = MailServer()
    mail.open.set()
    listening = Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SMTP(mail, loop=loop, **options), "127.0.0.1", 0)
        async with server:
            mail.port = server.sockets[0].getsockname()[1]
            listening.set()
            await asyncio.to_thread(mail.stop.wait)

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert listening.wait(30)
    try:
        yield mail
    finally:
        mail.open.set()
        mail.stop.set()
        thread.join()


def links_in(message: EmailMessage) -> list[str]:
    """The addresses of a message's text."""
    return re.findall(r"https?://\S+", message.get_content())
