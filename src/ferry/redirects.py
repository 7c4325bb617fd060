"""HTTP redirects as answers."""

from __future__ import annotations

import urllib.request
from typing import Any


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, and does not parse its address: the request fails with HTTPError.

    Following one would make a GET of a POST, whose 200 means nothing. It would also carry secrets to an address that is
    in no configuration.
    """

    def http_error_302(self, *_: Any, **__: Any) -> None:
        """Leave the answer to the handler of errors, which raises HTTPError."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302
