"""A machine that was started before anybody needed it: it asks whose it is until it is somebody's."""

import asyncio
import hashlib
import logging
import secrets
from dataclasses import replace

import aiohttp

from sandboxd.link_http import Identity, LinkHttp
from sandboxd.retry import jittered
from sandboxd.settings import Settings

ASK_EVERY_S = 0.5

logger = logging.getLogger(__name__)


async def become(session: aiohttp.ClientSession, settings: Settings, identity: Identity) -> Settings:
    """The settings as those of the sandbox that this machine has become.

    The code by which it enrols is made here, and only its hash is told: nobody has to hand one over.

    Raises:
        LinkClosedError: nobody wants this machine.
    """
    code = secrets.token_hex(32)
    enrol_hash = hashlib.sha256(code.encode()).hexdigest()
    http = LinkHttp(session, settings.link_http, settings.sandbox_id, identity, noun="warm")
    logger.info("machine %s waits for somebody", settings.sandbox_id)
    while (sandbox := await http.whose(settings.enrol_code, enrol_hash)) is None:
        await asyncio.sleep(jittered(ASK_EVERY_S))
    logger.info("machine %s is sandbox %s", settings.sandbox_id, sandbox)
    return replace(settings, sandbox_id=sandbox, enrol_code=code, is_warm=False)
