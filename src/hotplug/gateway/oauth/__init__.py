"""OAuth at remote servers: logins that are kept, renewed by the SDK's client, and sent with each request.

Nothing here imports the SDK before a token has to be got, renewed or revoked.
"""

from hotplug.gateway.oauth.credentials import OAuthCredentials
from hotplug.gateway.oauth.kept import Login, LoginKeeper, default_login_folder, keeper_of, logins_of
from hotplug.gateway.oauth.secrets import LoginSecrets, is_login, with_login

__all__ = [
    "Login",
    "LoginKeeper",
    "LoginSecrets",
    "OAuthCredentials",
    "default_login_folder",
    "is_login",
    "keeper_of",
    "logins_of",
    "with_login",
]
