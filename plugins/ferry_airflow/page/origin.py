"""The origin of a request: one that changes something must be sent by a page of this very server."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf
from fastapi import HTTPException, Request, status

HEADER = "x-ferry-request"
"""A page of another site cannot send this header without permission, and no answer gives it."""
_IMPLIED = {"https": ":443", "http": ":80"}
_LOOPBACK = ("127.0.0.1", "[::1]")


def is_of(origin: str, host: str, base_url: str) -> bool:
    """Return whether a page with this origin is one of the server that has the address `base_url`; pure.

    Only a server without such an address is recognised by `host`, the name that the request was sent to. A foreign name
    can be made to lead to any address (DNS rebinding), and then both have the foreign name.

    The names that this machine has for its loopback address count as one. The port that a scheme implies makes no
    difference: some proxies write it. `null`, of a page that may do nothing, is never the server's.
    """
    try:
        asked, ours = urlsplit(origin), urlsplit(base_url)
    except ValueError:
        return False
    port = _IMPLIED.get(asked.scheme, "")
    name = _plain(ours.netloc or host, port)
    return name != "" and _plain(asked.netloc, port) == name


def _plain(netloc: str, port: str) -> str:
    """Return a host with its port, without the implied one, and with one word for this machine."""
    name, colon, number = netloc.lower().removesuffix(port).rpartition(":")
    if not number.isdecimal():  # no port, or an IPv6 address without one
        name, colon, number = f"{name}{colon}{number}", "", ""
    return f"{'localhost' if name in _LOOPBACK else name}{colon}{number}"


async def from_here(request: Request) -> None:
    """Raise 403 for a request that no page of this server made: a cookie alone proves nothing."""
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, "The body has to be JSON")
    foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if HEADER not in headers or foreign:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "This request does not come from a page of this server")
    origin, host = headers.get("origin"), headers.get("host", "")
    base_url = conf.get("api", "base_url", fallback="") or ""
    if origin is not None and not is_of(origin, host, base_url):
        called = f"the request was sent to {host or 'no host'}, and [api] base_url is {base_url or 'not set'}"
        raise HTTPException(
            status.HTTP_403_FORBIDDEN,
            f"This request comes from a page of {origin}, which is not among this server's addresses: {called}. Behind"
            " a proxy, set [api] base_url of Airflow's API server to the address that browsers have, or let the proxy"
            " pass the header Host on",
        )
