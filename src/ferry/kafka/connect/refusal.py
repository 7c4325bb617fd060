"""Connections that fail for good: the message of a refused login or TLS handshake, with the remedy."""

from __future__ import annotations

import ssl

import kafka.errors as kafka_errors

_ABOUT_OUR_CERTIFICATE = frozenset(
    {
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_ACCESS_DENIED",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    }
)
"""OpenSSL's names of the alerts with which a broker refuses a client's certificate (RFC 8446, section 6.2)."""

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
_NO_COMMON_GROUND = frozenset({"SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_PROTOCOL_VERSION"})
_OTHER_HOST = frozenset({62, 64})  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


class LoginFailed(kafka_errors.SaslAuthenticationFailedError):  # type: ignore[misc]  # kafka-python has no types
    """A login that failed before the broker saw it; trying again does not help. The text ends with the remedy."""

    def __str__(self) -> str:
        return str(self.args[0])


class LoginDelayed(kafka_errors.KafkaConnectionError):  # type: ignore[misc]  # kafka-python has no types
    """A login service does not answer now, but may answer a moment later. The text is a sentence of its own."""

    def __str__(self) -> str:
        return str(self.args[0])


class TlsRefused(kafka_errors.KafkaConnectionError):  # type: ignore[misc]  # kafka-python has no types
    """A TLS handshake that will end in the same way the next time. The text is what the broker did, and the remedy."""


def connection_error(error: OSError) -> kafka_errors.KafkaConnectionError:
    """Return what went wrong on a socket as kafka-python's error; TlsRefused when another try does not help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsRefused(_distrust(error))
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    if reason in _ABOUT_OUR_CERTIFICATE:
        why = reason.partition("_ALERT_")[2].replace("_", " ").lower()
        return TlsRefused(
            f"refused our certificate ({why}): put one into ssl.keystore.location that has not expired and that the "
            "brokers trust"
        )
    if reason in _NO_TLS:
        return TlsRefused("does not speak TLS on that port: correct the port, or security.protocol")
    if reason in _NO_COMMON_GROUND:
        return TlsRefused("finds no common version or cipher of TLS: correct ssl.enabled.protocols")
    return kafka_errors.KafkaConnectionError(error)


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _OTHER_HOST:
        return (
            f"shows a certificate for another host ({error.verify_message}): correct the address or the certificate, "
            "or empty ssl.endpoint.identification.algorithm to trust it nevertheless"
        )
    return (
        f"shows a certificate that cannot be trusted ({error.verify_message}): renew the broker's, or correct "
        "ssl.truststore.location"
    )


def refusal(where: str, error: BaseException | None) -> str | None:
    """Return why a connection with the cluster at `where` will fail the next time, too; None for a passing failure."""
    match error:
        case LoginFailed():
            return f"{where}: {error}"
        case TlsRefused():
            return f"{where} {error.args[0]}"
        case kafka_errors.SaslAuthenticationFailedError() | kafka_errors.AuthorizationError():
            return f"{where} refused the credentials ({error}): correct its sasl settings"
        case kafka_errors.UnsupportedSaslMechanismError():
            return f"{where} does not offer that sasl.mechanism on this listener ({error}): correct it, or the port"
        case kafka_errors.IllegalSaslStateError():
            return f"{where} expects no login on this listener: correct the port, or security.protocol"
    return None
