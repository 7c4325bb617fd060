"""Transactional ids that a cluster knows (ListTransactions, KIP-664)."""

from __future__ import annotations

from kafka.protocol.admin import ListTransactionsRequest

from ferry.errors import Refused, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld


async def transactional_ids(cluster: Cluster, prefix: str) -> set[str]:
    """Return the ids that begin with `prefix`, as far as this login may see them; none on brokers before Kafka 3.0.

    A broker forgets an id that was not used for `transactional.id.expiration.ms`, a week by default. Raises Unreachable
    when a broker does not answer, because that broker may know one, and Refused when the login may not list them.
    """
    found: set[str] = set()
    for node in cluster.brokers:

        async def ask(node: int = node) -> None:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            answer = await cluster.ask(request, node)
            if answer.error_code in codes.UNAUTHORIZED:
                raise Refused(f"transactions of cluster {cluster.alias} may not be listed: grant DESCRIBE on them")
            if answer.error_code:
                raise Retryable(f"broker {node} of cluster {cluster.alias}: {codes.advised(answer.error_code)}")
            names = (state.transactional_id for state in answer.transaction_states)
            found.update(name for name in names if name.startswith(prefix))

        try:
            await cluster.retrying(ask)
        except TooOld:
            return found
    return found
