"""kafka-python's connection manager with Ferry's transport, TLS handshake and memory of failures."""

from __future__ import annotations

import selectors
import socket
import ssl
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from ferry.kafka.connect.refusal import connection_error
from ferry.kafka.connect.transport import Transport


class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's connection manager, which makes Ferry's transport; it remembers why connections failed.

    Without that, a bootstrap repeats a refused login until its time is over, and then does not show the reason.
    """

    def __init__(self, net: NetworkSelector, **options: Any) -> None:
        """Take the event loop, and kafka-python's options. A cluster with TLS needs `ssl_context`."""
        super().__init__(net, **options)
        self.last_failure: BaseException | None = None
        self._loop = net
        self._made: dict[Any, Any] = {}

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        """Return a connection, made or being made; its failure is kept in `last_failure`."""
        connection = super().get_connection(node_id, *arguments, **options)
        self._made[node_id] = connection
        if connection.initializing:
            connection.init_future.add_errback(self._remember)
        return connection

    def close_throttled(self) -> None:
        """Close the connections that a broker has paused (KIP-219); the next request opens new ones."""
        for connection in list(self._made.values()):
            if "throttle" in connection.paused and not connection.closed:
                connection.close()

    def _remember(self, error: BaseException) -> None:
        self.last_failure = error

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Transport:
        """Connect with a broker, by TLS if that is asked for: the one private method of kafka-python that is replaced.

        Raises KafkaConnectionError, also after `timeout_at`. The socket is then closed.
        """
        sock = await _connected(self._loop, node.host, node.port, self.config["socket_options"], timeout_at)
        if self.ssl_enabled:
            sock = await _secured(self._loop, sock, node.host, self.config["ssl_context"], timeout_at)
        return Transport(self._loop, sock, host=node.host)


async def _connected(
    net: NetworkSelector, host: str, port: int, options: Any, timeout_at: float | None
) -> socket.socket:
    """Return a socket that is connected with the first of the host's addresses that accepts."""
    factory = KafkaNetSocket()
    failure = kafka_errors.KafkaConnectionError(f"no address is known for the name {host}")
    for family, kind, protocol, _, address in factory.dns_lookup(host, port):
        try:
            sock: socket.socket = factory.socket(family, kind, protocol)
        except OSError as error:  # such as a machine without IPv6
            failure = kafka_errors.KafkaConnectionError(f"unable to connect: {error}")
            continue
        try:
            sock.setblocking(False)
            for option in options:
                sock.setsockopt(*option)
            await factory.sock_connect(net, sock, address, timeout_at=timeout_at)
        except kafka_errors.KafkaTimeoutError:
            sock.close()
            raise kafka_errors.KafkaConnectionError("Connection timed out") from None
        except (OSError, kafka_errors.KafkaConnectionError) as error:
            sock.close()
            known = isinstance(error, kafka_errors.KafkaConnectionError)
            failure = error if known else kafka_errors.KafkaConnectionError(f"unable to connect: {error}")
        except BaseException:  # the loop was closed meanwhile
            sock.close()
            raise
        else:
            return sock
    raise failure


async def _secured(
    net: NetworkSelector, plain: socket.socket, host: str, context: ssl.SSLContext, timeout_at: float | None
) -> ssl.SSLSocket:
    """Return the socket after its TLS handshake."""
    try:
        sock = context.wrap_socket(plain, server_hostname=host.rstrip("."), do_handshake_on_connect=False)
    except BaseException:
        plain.close()
        raise
    try:
        while True:
            try:
                sock.do_handshake()
            except ssl.SSLWantReadError:
                await net.wait_read(sock, timeout_at=timeout_at)
            except ssl.SSLWantWriteError:
                await net.wait_write(sock, timeout_at=timeout_at)
            else:
                return sock
    except OSError as error:
        sock.close()
        raise connection_error(error) from error
    except kafka_errors.KafkaTimeoutError:
        sock.close()
        raise kafka_errors.KafkaConnectionError("the TLS handshake does not end in time") from None
    except BaseException:  # the loop was closed meanwhile
        sock.close()
        raise


class Selector(selectors.DefaultSelector):
    """The system's selector, but fast when a socket is not registered: its error has no describing text."""

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Return the registration of a socket. Raises KeyError when there is none."""
        key: selectors.SelectorKey = self._fd_to_key[fileobj.fileno()]  # type: ignore[attr-defined]  # typeshed hides it
        return key
