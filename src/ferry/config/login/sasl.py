"""SASL settings of Java's clients as a login: the mechanism and the credentials.

Sources: `SaslConfigs`, `JaasContext`, `SaslClientAuthenticator`, KIP-768 and KIP-1139 (OAUTHBEARER), the options of
`com.sun.security.auth.module.Krb5LoginModule`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ferry.config.keys import values
from ferry.config.login.allowed import ENDPOINT, allowed_urls, not_allowed
from ferry.config.login.jaas import KAFKA_OPTS, JaasLogin, jaas_file, parse_jaas, read_jaas_file
from ferry.config.login.security import KerberosLogin, Login, OAuthLogin, PasswordLogin
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import shown_address
from ferry.errors import BadInput, Refused
from ferry.files import read_bounded
from ferry.messages.catalogue import sentence
from ferry.model import located

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
_EXAMPLE_OPTIONS = {
    "OAUTHBEARER": "required;",
    "GSSAPI": 'required useKeyTab=true keyTab="..." principal="..." serviceName="kafka";',
}
_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_RETRIEVERS = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{name}JwtRetriever"
    for name in ("Default", "ClientCredentials", "File")
)
_CALLBACK = "sasl.login.callback.handler.class"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"


def login(properties: Mapping[str, str]) -> Login:
    """Return the login. `properties` are effective and resolved, by Java names.

    Raises BadInput for what is missing or cannot be read, Refused for what is not supported.
    """
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in _MODULES:
        raise Refused(f"sasl.mechanism={mechanism} is not supported; use one of {', '.join(_MODULES)}")
    _refuse_classes(properties, mechanism)
    key, jaas = jaas_login(properties, mechanism)
    if jaas.module != _MODULES[mechanism]:
        raise BadInput(f"{key}: module {jaas.module} does not serve {mechanism}; write {_MODULES[mechanism]}")
    if mechanism == "OAUTHBEARER":
        return _oauth(properties, key, jaas)
    if mechanism == "GSSAPI":
        return _kerberos(properties, key, jaas)
    for option in ("username", "password"):
        if option not in jaas.options:
            raise BadInput(f'{key}: option {option} is missing; add {option}="..."')
    if jaas.is_on("tokenauth"):
        raise Refused(f"{key}: tokenauth=true (delegation tokens) is not supported; use a user's credentials")
    return PasswordLogin(mechanism=mechanism, username=jaas.options["username"], password=jaas.options["password"])


def _refuse_classes(properties: Mapping[str, str], mechanism: str) -> None:
    """Refuse classes that would run in Java: those of Kafka are understood, others cannot be."""
    known = {_CALLBACK: _HANDLERS, _RETRIEVER: _RETRIEVERS} if mechanism == "OAUTHBEARER" else {}
    for key in ("sasl.client.callback.handler.class", _CALLBACK, "sasl.login.class", _RETRIEVER):
        name = properties.get(key, "").strip()
        if name and name not in known.get(key, ()):
            allowed = f"; Kafka's own {known[key][0]} is" if key in known else ""
            raise Refused(f"{key}={name} is not supported{allowed}: correct or remove the line")


def jaas_login(properties: Mapping[str, str], mechanism: str) -> tuple[str, JaasLogin]:
    """Return the login module, and the name of what it was read from. Raises BadInput unless there is exactly one."""
    key = "sasl.jaas.config"
    if key in properties:
        return key, _read(key, lambda: parse_jaas(properties[key]))
    path = jaas_file()
    if path is not None:
        return f"{key} (from {path})", _read(key, lambda: read_jaas_file(path))
    options = _EXAMPLE_OPTIONS.get(mechanism, "required username=... password=...;")
    raise BadInput(
        f"{key}: is missing for {mechanism}; write {_MODULES[mechanism]} {options}, or name a JAAS file in {KAFKA_OPTS}"
    )


def _read(key: str, action: Callable[[], JaasLogin]) -> JaasLogin:
    try:
        return action()
    except BadValue as error:
        raise BadInput(located(key, error.message)) from None


def _kerberos(properties: Mapping[str, str], key: str, jaas: JaasLogin) -> KerberosLogin:
    service = _service_name(properties, key, jaas)
    principal = jaas.options.get("principal", "").strip() or None
    if not jaas.is_on("useKeyTab"):
        if not jaas.is_on("useTicketCache"):
            raise BadInput(
                f"{key}: has neither useKeyTab=true nor useTicketCache=true, and Ferry cannot ask for a password; add "
                "one of them"
            )
        cache = jaas.options.get("ticketCache", "").strip() or None
        return KerberosLogin(
            service_name=service, principal=principal, keytab_path=None, keytab=b"", ticket_cache=cache
        )
    path = jaas.options.get("keyTab", "").strip().removeprefix("FILE:").removeprefix("file:")
    if not path:
        raise BadInput(f'{key}: option keyTab is missing; add keyTab="/path/to/the.keytab"')
    if principal is None:
        raise BadInput(f'{key}: option principal is missing; add principal="name@REALM"')
    # The path may come from a reference: show where it was written, not the path.
    content = _content(f"{key}: keyTab", path, "correct the path that option keyTab has there, or its rights")
    if not content.startswith(b"\x05"):
        raise BadInput(f"{key}: keyTab {path} is not a keytab; make it with kadmin's ktadd")
    return KerberosLogin(service_name=service, principal=principal, keytab_path=path, keytab=content, ticket_cache=None)


def _service_name(properties: Mapping[str, str], key: str, jaas: JaasLogin) -> str:
    """Return `sasl.kerberos.service.name` or the module's `serviceName`.

    As in Java, they must not contradict each other.
    """
    by_key = properties.get("sasl.kerberos.service.name", "").strip()
    by_module = jaas.options.get("serviceName", "").strip()
    if by_key and by_module and by_key != by_module:
        raise BadInput(
            f"sasl.kerberos.service.name: {by_key!r} contradicts serviceName {by_module!r} of {key}; keep one of them"
        )
    if not by_key and not by_module:
        raise BadInput("sasl.kerberos.service.name: is missing; add the first part of the brokers' principals (kafka)")
    return by_key or by_module


def _oauth(properties: Mapping[str, str], key: str, jaas: JaasLogin) -> OAuthLogin:
    from ferry.config.login.stores import tls_options  # noqa: PLC0415 - cryptography, only where TLS is configured

    url = properties.get(ENDPOINT, "").strip()
    if not url:
        raise BadInput(f"{ENDPOINT}: is missing; add the address of the token endpoint, or file:///path/to/a/token")
    parts = _address(url)
    allowed = allowed_urls()
    if allowed is not None and url not in allowed:
        raise BadInput(f"{ENDPOINT}: {not_allowed(url)}")
    names = {
        "client_id": ("sasl.oauthbearer.client.credentials.client.id", "clientId"),
        "client_secret": ("sasl.oauthbearer.client.credentials.client.secret", "clientSecret"),
        "scope": ("sasl.oauthbearer.scope", "scope"),
    }
    found = {name: properties.get(new) or jaas.options.get(old) or "" for name, (new, old) in names.items()}
    path = unquote(parts.path) if parts.scheme == "file" else None
    token = ""
    if path is None:
        for name in ("client_id", "client_secret"):
            if not found[name]:
                raise BadInput(f'{names[name][0]}: is missing; add it, or {names[name][1]}="..." in {key}')
    else:
        token = _content(f"{ENDPOINT}: token file", path).decode("ascii", "replace").strip()
    ssl_options = {name: value for name, value in jaas.options.items() if name.startswith("ssl.")}
    prefix = "extension_"
    return OAuthLogin(
        endpoint_url=url if path is None else None,
        client_id=found["client_id"],
        client_secret=found["client_secret"],
        scope=found["scope"] or None,
        url_encode=_boolean(properties, "sasl.oauthbearer.header.urlencode"),
        tls=tls_options(ssl_options, f"{key}: ") if parts.scheme == "https" else None,
        token_file=path,
        token=token,
        extensions={n.removeprefix(prefix): value for n, value in jaas.options.items() if n.startswith(prefix)},
        connect_timeout_ms=_number(properties, "sasl.login.connect.timeout.ms", 10_000),
        read_timeout_ms=_number(properties, "sasl.login.read.timeout.ms", 10_000),
        retry_ms=_number(properties, "sasl.login.retry.backoff.ms", 100),
        retry_max_ms=_number(properties, "sasl.login.retry.backoff.max.ms", 10_000),
    )


def _address(url: str) -> SplitResult:
    """Return the parts of the endpoint's address. Raises BadInput for a text that is not an address."""
    wrong = BadInput(f"{ENDPOINT}: {shown_address(url)!r} is not an address; write https://host/path or file:///path")
    try:
        parts = urlsplit(url)
        reachable = parts.scheme == "file" or (bool(parts.hostname) and parts.port != 0)
    except ValueError:  # an odd bracket, or a port that is not a number
        raise wrong from None
    if parts.scheme not in ("http", "https", "file") or not reachable:
        raise wrong
    return parts


def _content(key: str, path: str, remedy: str = "correct the path or its permissions") -> bytes:
    try:
        content = read_bounded(Path(path))
    except OSError as error:
        said = sentence("login.file.unreadable", what=f"{key} {path}", why=str(error.strerror), remedy=remedy)
        raise BadInput(said) from None
    if not content.strip():
        raise BadInput(f"{key} {path} holds {len(content)} bytes, which cannot be right; correct the path")
    return content


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    try:
        return values.integer(1, 2**31 - 1)(properties[key]) if key in properties else default
    except BadValue as error:
        raise BadInput(located(key, error.message)) from None


def _boolean(properties: Mapping[str, str], key: str) -> bool:
    try:
        return values.boolean(properties[key]) if key in properties else False
    except BadValue as error:
        raise BadInput(located(key, error.message)) from None
