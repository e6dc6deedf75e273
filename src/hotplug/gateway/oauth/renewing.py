"""A login renewed by the SDK's OAuth client, without a request to the server itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthMetadata, OAuthToken, ProtectedResourceMetadata

from hotplug.connect.secrets import Secrets
from hotplug.gateway.config import OAuthSettings
from hotplug.gateway.oauth.flow import (
    ByHand,
    Memory,
    Unanswered,
    client_of,
    configured_client,
    first_request,
    our_metadata,
    table,
)
from hotplug.gateway.oauth.kept import Login
from hotplug.gateway.oauth.outcome import RenewalFailed, RenewalRefused

__all__ = ["provider_for", "renewed"]


async def renewed(
    login: Login,
    url: str,
    settings: OAuthSettings,
    secrets: Secrets,
    keep: Callable[[Login], None],
    clock: Callable[[], float],
) -> Login:
    """The login after it, kept already.

    Args:
        keep: Keeps it; may block.
        clock: Seconds since 1970.

    Raises:
        RenewalRefused: A person has to log in again.
        RenewalFailed: It couldn't be decided.
        HotplugError: The client's secret can't be had, or the login can't be kept.
    """
    found: list[Login] = []

    async def save(tokens: OAuthToken) -> None:
        new = following(login, tokens, clock())
        await asyncio.to_thread(keep, new)
        found.append(new)

    provider = await provider_for(login, url, settings, secrets, save)
    # The SDK renews a token that has ended; whether this one has is our clock's, or the server's, to say.
    provider.context.token_expiry_time = 1.0
    request = first_request(url)
    async with ByHand(url, login.secret_values) as hand:
        try:
            async with hand.flow(provider, request) as flow:
                await flow.until(request)
        except Unanswered as error:
            raise RenewalFailed(str(error)) from None
        if found:
            return found[0]
        status = hand.last_status
        if status is None:
            raise RenewalRefused("since nothing renews it")
        if status >= 500 or status in (408, 425, 429) or (200 <= status < 400):
            raise RenewalFailed(f"its authorization server answers {hand.last_words()}")
        raise RenewalRefused(f"its authorization server answers {hand.last_words()}")


async def provider_for(
    login: Login, url: str, settings: OAuthSettings, secrets: Secrets, save: Any = None
) -> OAuthClientProvider:
    """The SDK's client with what is known from the login.

    Raises:
        HotplugError: The client's secret can't be had.
    """
    authorization = OAuthMetadata.model_validate(login.authorization) if login.authorization else None
    client = await configured_client(settings, secrets, login.server, authorization) or client_of(login)
    memory = Memory(OAuthToken.model_validate(login.tokens), client, save=save)
    provider = OAuthClientProvider(url, our_metadata(), memory)
    context = provider.context
    # Kept with the login: without it the SDK would send what renews the login to the server, and not to who gave it.
    context.oauth_metadata = authorization
    if login.resource is not None:
        resource = context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
        context.auth_server_url = str(resource.authorization_servers[0])
    context.client_info = client
    context.current_tokens = memory.tokens
    return provider


def following(login: Login, tokens: OAuthToken, now: float) -> Login:
    """The login with new tokens."""
    expires_at = None if tokens.expires_in is None else now + tokens.expires_in
    return replace(login, tokens=table(tokens), obtained_at=now, expires_at=expires_at)
