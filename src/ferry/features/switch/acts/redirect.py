"""The hooks that stop clients, and that send them to the new cluster: a command, an HTTP call, or both.

The outcome is recorded. If a process is killed, its hook may be called twice. A hook gets the switch's id, by which it
can recognise the second call.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode
from dataclasses import replace
from http.client import HTTPException
from urllib.parse import unquote, urlsplit

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys import values
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput, Refused
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.settings import SwitchHook
from ferry.http_calls import answer_of
from ferry.model import with_text
from ferry.model.switch import Evidence, SwitchState

SAID_BYTES = 2_000
"""How many bytes of a hook's answer are kept: the last of a command's output, the first of an HTTP answer."""

_AIRFLOW = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_")


def redirect(sides: Sides, state: SwitchState, hook: SwitchHook, still_mine: StillMine) -> Evidence:
    """Call the hook. Raises Refused if it fails or takes too long; nothing after it is done then."""
    called = call_hook(sides, state, hook, "redirect", still_mine)
    if not called:
        return Evidence(sentence="no hook is set: send clients to the new cluster by hand", facts={"hook": None})
    return Evidence(sentence="; ".join(str(one["sentence"]) for one in called), facts={"hook": called})


def call_hook(
    sides: Sides, state: SwitchState, hook: SwitchHook, what: str, still_mine: StillMine
) -> list[dict[str, object]]:
    """Call the `stop` or the `redirect` hook, and return its results; empty if none is set. Raises Refused."""
    body = {
        "hook": what,
        "switch": state.switch.id,
        "verb": state.switch.verb.value,
        "flow": str(state.switch.named),
        "from": sides.old,
        "to": sides.new,
        "bootstrap": _bootstrap(sides.via),
    }
    called = []
    if hook.command is not None:
        still_mine()
        called.append(_command(hook.command, body, hook.timeout_seconds))
    if hook.url is not None:
        still_mine()
        called.append(_call(hook.url, body, hook.timeout_seconds))
    return called


def with_given(file: SwitchHook, given: SwitchHook | None) -> SwitchHook:
    """Return the file's hook, with its command or URL replaced by the given one."""
    if given is None:
        return file
    return replace(
        file,
        command=file.command if given.command is None else given.command,
        url=file.url if given.url is None else given.url,
    )


def words_of(given: SwitchHook | None) -> tuple[str, ...]:
    """Return which hooks were given, `command` or `url`, in the form of a switch's options."""
    hooks = () if given is None else (("command", given.command), ("url", given.url))
    return tuple(word for word, hook in hooks if hook is not None)


def refuse_unusable(hook: SwitchHook, what: str) -> None:
    """Raise BadInput for a command or URL of the `stop` or the `redirect` hook that cannot be run or called.

    A command is empty or has unbalanced quotes. A URL is not an `http` or `https` address; the message does not repeat
    it.
    """
    try:
        words = shlex.split("none" if hook.command is None else hook.command)
    except ValueError as error:
        raise BadInput(f"the {what} command cannot be read ({error}): correct its quotes") from None
    if not words:
        raise BadInput(f"the {what} command is empty: name a program, or remove the line")
    try:
        callable_url = hook.url is None or values.optional_url(hook.url)
    except BadValue as error:
        raise BadInput(with_text(error.message, f"--{what}-url {error}")) from None
    if not callable_url:
        raise BadInput(f"--{what}-url is empty: write an address, or omit it")


def _bootstrap(flow: FlowConfig) -> str:
    return str(flow.client("target", "producer").get("bootstrap.servers", ""))


def _command(command: str, body: dict[str, str], seconds: int) -> dict[str, object]:
    what = body["hook"]
    words = shlex.split(command)
    names = {f"FERRY_SWITCH_{name.upper()}": value for name, value in body.items()}
    began = time.monotonic()
    try:
        done = subprocess.run(
            words,
            env={**_environment(), **names},
            capture_output=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Refused(_again(f"the {what} command took longer than {seconds} s")) from None
    except (OSError, ValueError) as error:  # a ValueError: a byte 0 in it
        raise Refused(_again(f"the {what} command {words[0]!r} could not be started ({error})")) from None
    said = (done.stdout + done.stderr)[-SAID_BYTES:].decode(errors="replace").strip()
    if done.returncode:
        raise Refused(_again(f"the {what} command ended with exit code {done.returncode} ({said[-200:]})"))
    took = time.monotonic() - began
    return {
        "kind": "command",
        "seconds": round(took, 1),
        "said": said,
        "sentence": f"the command ended well in {took:.1f} s",
    }


def _environment() -> dict[str, str]:
    """Return the environment of a hook, without the variables of Airflow with keys, database and connections."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_AIRFLOW)}


def _call(url: str, body: dict[str, str], seconds: int) -> dict[str, object]:
    what = body["hook"]
    began = time.monotonic()
    try:
        status, content = answer_of(_request(url, body), seconds=seconds, most=SAID_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        raise Refused(_again(f"the {what} hook answered with HTTP {error.code}{_elsewhere(error)}")) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError) and time.monotonic() - began >= seconds:
            raise Refused(_again(f"the {what} hook took longer than {seconds} s")) from None
        if isinstance(error, HTTPException):
            reason = f"its answer is not HTTP: {type(error).__name__}"
        raise Refused(_again(f"the {what} hook could not be called ({reason})")) from None
    except ValueError:  # its text may repeat the address, and with it a secret
        raise Refused(_again(f"the {what} hook could not be called (its address is not one that HTTP has)")) from None
    took = time.monotonic() - began
    return {
        "kind": "http",
        "status": status,
        "seconds": round(took, 1),
        "said": content.decode(errors="replace").strip(),
        "sentence": f"the hook answered with HTTP {status} in {took:.1f} s",
    }


def _request(url: str, body: dict[str, str]) -> urllib.request.Request:
    """Return the call. urllib takes a login in an address for a part of the host, so it goes into a header."""
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "Idempotency-Key": body["switch"]}
    if login:
        headers["Authorization"] = f"Basic {b64encode(unquote(login).encode()).decode()}"
    address = parts._replace(netloc=host).geturl()
    return urllib.request.Request(address, data=json.dumps(body).encode(), headers=headers, method="POST")


def _elsewhere(error: urllib.error.HTTPError) -> str:
    """Return the address of a redirect without its query and login, which may hold a secret."""
    place = error.headers.get("Location") if 300 <= error.code < 400 else None
    if place is None:
        return ""
    try:
        parts = urlsplit(place)
    except ValueError:
        return ", a redirect to no address"
    where = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return f", a redirect to {where}, and redirects are not followed"


def _again(sentence: str) -> str:
    return f"{sentence}: correct it"
