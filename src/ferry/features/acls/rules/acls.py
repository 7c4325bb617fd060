"""The changes that a run makes to the target's ACLs, decided from those of both clusters.

It adds ACLs, and removes only those that Ferry made.

The default is as careful as MirrorMaker 2 (`MirrorSourceConnector.syncTopicAcls` of Kafka 4.3.0). It takes
literal topics that the flow copies, and no ALLOW WRITE; ALLOW ALL becomes READ. It takes only the read side. ADR 17 has
the reasons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import itemgetter

from ferry.config.flow.acls import AclPolicy, AclSync
from ferry.ledger.acl_codec import OwnAcl
from ferry.messages.catalogue import sentence
from ferry.model import EVERYBODY, WILDCARD, AclBinding, AclChange, Flow, Sentence
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy, copies_of, innermost
from ferry.policy.names import illegal_name

TYPES = frozenset({"topic", "group", "transactional-id", "cluster"})
"""The resource types whose ACLs are copied; the others are delegation tokens and users."""

READ_SIDE = frozenset({"Read", "Describe", "DescribeConfigs"})
READABLE = frozenset({"topic", "group"})
"""The resource types that one reads: of a denial of everything, the read side may be copied."""

WRITE_SIDE = frozenset({"Write", "Create", "Delete", "Alter", "AlterConfigs", "IdempotentWrite", "ClusterAction"})

OWN_NAMES = {"topic": "ferry-ledger.", "group": "ferry.", "transactional-id": "ferry."}
"""The prefixes of names that belong to a Ferry flow into the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclRules:
    """The part of a flow's configuration that decides about ACLs."""

    flow: Flow
    policy: ReplicationPolicy
    sync: AclSync
    takes_topic: Callable[[str], bool]
    takes_group: Callable[[str], bool]
    """Returns False for all groups while group offsets are not synced."""
    policy_name: str = "the replication policy"
    own_principal: str | None = None
    """Ferry's principal on the target's brokers, if the file shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFacts:
    """The ACLs of both clusters, and what the ledger has about those on the target.

    `topics` are the topics of the source that the flow takes. `refused` are those of them that the plan refuses as a
    whole. `others` are topics of the target that the flow did not create. `claimed` are those that it created by the
    ledger's word alone: no topic of the source that the plan takes becomes one of them.
    """

    source_cluster_id: str
    source: frozenset[AclBinding]
    target: frozenset[AclBinding]
    own: Mapping[AclBinding, OwnAcl]
    topics: frozenset[str]
    refused: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An ACL of the source that is not copied, and why, as half a sentence.

    `said`: every run reports it, because operators do not expect it.
    """

    binding: AclBinding
    why: str
    said: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDiff:
    """How the target differs from what it should have.

    - `kept`: Ferry made them, and nothing asks for them now, but their source ACLs still exist, or were of another
      source cluster. The settings changed, so the operator decides what that means.
    - `bereft`: all that Ferry made, if all their source ACLs are gone at once. That is most often an accident.
    - `forgotten`: they are not on the target any more, and nothing asks for them now.
    - `moved`: the ledger must record another source ACL for them, because the first one is gone.
    - `foreign`: the ledger names them as Ferry's, but nothing else shows that a sync of this flow made them for its
      copies alone. Another principal wrote to the ledger, the settings changed, or it cannot be shown, as for the
      cluster and for transactional ids. They are not changed.
    - `unmapped`: principals for which there is no rule.
    - `in_step`: the number of wanted ACLs that exist already.
    - `wide`: ACLs to be created that also apply to `others`, topics of the target that the flow did not create.
    """

    changes: tuple[AclChange, ...]
    left_out: tuple[LeftOut, ...]
    kept: tuple[AclBinding, ...]
    forgotten: tuple[AclBinding, ...]
    moved: tuple[AclChange, ...]
    unmapped: tuple[str, ...]
    in_step: int
    bereft: tuple[AclBinding, ...] = ()
    foreign: tuple[AclBinding, ...] = ()
    wide: tuple[AclBinding, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def created(self) -> tuple[AclChange, ...]:
        """The ACLs to create."""
        return tuple(change for change in self.changes if change.kind == "create")

    @property
    def deleted(self) -> tuple[AclChange, ...]:
        """The ACLs to delete."""
        return tuple(change for change in self.changes if change.kind == "delete")


@dataclass(slots=True, kw_only=True)
class _Wanted:
    by_target: dict[AclBinding, AclBinding] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    unmapped: set[str] = field(default_factory=set)


def decide_acls(rules: AclRules, facts: AclFacts) -> AclDiff:
    """Decide what to create and to delete on the target. Pure: equal arguments give an equal result.

    An ACL is deleted only if all of these hold:
    - The ledger shows that Ferry made it.
    - This flow makes ACLs on its resource from the ACL that it was made from.
    - It applies to copies alone.
    - The ACL that it was made from is gone from the same source cluster, and no other asks for it.
    - Something is left of the several ACLs that Ferry had copied.

    An ACL that Ferry made and that was deleted on the target is made again, as in MirrorMaker 2.
    """
    topics, others = sorted(facts.topics), sorted(facts.others)
    copies, unshown = _shown_copies(rules, facts), sorted(facts.others | facts.claimed)
    wanted = _wanted(rules, facts, topics)
    # DENY is created first and deleted last, so that nothing is open in between.
    creations = [
        AclChange(kind="create", binding=binding, source=source, again=binding in facts.own)
        for binding, source in sorted(wanted.by_target.items(), key=lambda item: (item[0].allows, item[0]))
        if binding not in facts.target
    ]
    deletions: list[AclChange] = []
    kept: list[AclBinding] = []
    foreign: list[AclBinding] = []
    forgotten: list[AclBinding] = []
    moved: list[AclChange] = []
    for binding, own in sorted(facts.own.items(), key=itemgetter(0)):
        source = wanted.by_target.get(binding)
        if source is not None:
            if own.source not in facts.source and binding in facts.target:
                moved.append(AclChange(kind="create", binding=binding, source=source))
        elif binding not in facts.target:
            forgotten.append(binding)
        elif own.source in facts.source or own.source_cluster_id != facts.source_cluster_id:
            kept.append(binding)
        elif not (
            _is_made_of(rules, facts, topics, binding, own.source)
            and _is_of_copies(rules, binding, copies, others, unshown)
        ):
            foreign.append(binding)
        else:
            deletions.append(AclChange(kind="delete", binding=binding, source=own.source))
    bereft: tuple[AclBinding, ...] = ()
    if not (wanted.by_target or kept) and len({change.source for change in deletions}) > 1:
        bereft, deletions = tuple(change.binding for change in deletions), []
    reached = _reached([change.binding for change in creations], others)
    return AclDiff(
        wide=tuple(reached),
        others=tuple(sorted({name for names in reached.values() for name in names})),
        changes=(*creations, *sorted(deletions, key=lambda change: (not change.binding.allows, change.binding))),
        left_out=tuple(wanted.left_out),
        kept=tuple(kept),
        foreign=tuple(foreign),
        bereft=bereft,
        forgotten=tuple(forgotten),
        moved=tuple(moved),
        unmapped=tuple(sorted(wanted.unmapped)),
        in_step=len(wanted.by_target) - len(creations),
    )


def _reached(bindings: Sequence[AclBinding], others: Sequence[str]) -> dict[AclBinding, Sequence[str]]:
    """Return the ACLs for several topics that also apply to some of the `others` (in order), with these topics."""
    found: dict[AclBinding, Sequence[str]] = {}
    for binding in bindings:
        if binding.resource_type == "topic" and _is_wide(binding) and (names := _held_for(binding, others)):
            found[binding] = names
    return found


def _held_for(binding: AclBinding, names: Sequence[str]) -> Sequence[str]:
    """Return those of the topics `names` (in order) to which an ACL of topics applies."""
    begun = _begun(binding)
    names = names[bisect_left(names, begun) :]
    if not _is_wide(binding):
        return [name for name in names[:1] if name == begun]
    return names[: bisect_left(names, True, key=lambda name: not name.startswith(begun))]


def _wanted(rules: AclRules, facts: AclFacts, topics: Sequence[str]) -> _Wanted:
    wanted = _Wanted()
    for binding in sorted(facts.source):
        out = _not_taken(rules, binding) or _foreign(rules, facts, topics, binding)
        if out is not None:
            wanted.left_out.append(out)
            continue
        principal = rules.sync.mapping.of(binding.principal)
        if not principal:
            why = "ferry.sync.acls.principal.mapping leaves its principal out"
            if principal is None:
                wanted.unmapped.add(binding.principal)
                why = "no rule of ferry.sync.acls.principal.mapping is about its principal"
            wanted.left_out.append(LeftOut(binding=binding, why=why))
            continue
        if not binding.allows and principal == rules.own_principal:
            why = f"at the target it would be about Ferry's own principal {principal}"
            wanted.left_out.append(LeftOut(binding=binding, why=why, said=True))
            continue
        for renamed, operation in product(_renamed(rules, topics, binding), _operations(rules, binding)):
            made = replace(renamed, principal=principal, operation=operation)
            # If several ACLs give the same one, the first counts, so that the ledger names the same one in every run.
            wanted.by_target.setdefault(made, binding)
    return wanted


def _operations(rules: AclRules, binding: AclBinding) -> Sequence[str]:
    """Return the operations of an ACL on the target.

    `All` becomes the read side with the policy `read`. It does so with either policy if it forbids everybody
    everything: the write side of that would stop Ferry itself.
    """
    of_reading = rules.sync.policy is AclPolicy.READ or _is_against_everybody(binding)
    if binding.operation != "All" or not of_reading:
        return (binding.operation,)
    return ("Read",) if binding.allows else sorted(READ_SIDE)  # ALLOW READ includes DESCRIBE, DENY READ does not


def _not_taken(rules: AclRules, binding: AclBinding) -> LeftOut | None:
    """Return why an ACL is not copied, without regard to the topics that the flow copies.

    It is None if nothing is against it.
    """

    def out(why: str, *, said: bool = False) -> LeftOut:
        return LeftOut(binding=binding, why=why, said=said)

    if not binding.is_known:
        return out("this Ferry does not know what it is about: upgrade Ferry")
    if binding.resource_type not in TYPES:
        return out(f"ACLs of a {binding.resource_type} are not copied")
    if rules.sync.policy is AclPolicy.READ:
        return _not_read_side(binding)
    own = OWN_NAMES.get(binding.resource_type)
    if own is not None and binding.resource_name.startswith(own):
        return out("it is about a flow of Ferry's into the source")
    against_writing = binding.operation in WRITE_SIDE or (
        binding.operation == "All" and binding.resource_type not in READABLE
    )
    if against_writing and _is_against_everybody(binding):
        return out("it forbids everybody to write, and so Ferry itself: give the others one each", said=True)
    return None


def _is_against_everybody(binding: AclBinding) -> bool:
    return not binding.allows and (binding.principal, binding.host) == (EVERYBODY, WILDCARD)


def _not_read_side(binding: AclBinding) -> LeftOut | None:
    policy = "ferry.sync.acls.policy = read"
    if binding.resource_type != "topic":
        return LeftOut(binding=binding, why=f"{policy} takes ACLs of topics alone")
    if _is_wide(binding):
        return LeftOut(binding=binding, why=f"{policy} takes ACLs of single topics alone")
    if binding.operation not in READ_SIDE and binding.operation != "All":
        return LeftOut(binding=binding, why=f"{policy} takes what is about reading alone")
    return None


def _foreign(rules: AclRules, facts: AclFacts, topics: Sequence[str], binding: AclBinding) -> LeftOut | None:
    """Return why an ACL applies to nothing that the flow copies to the target; None if it does.

    `topics` are in order.
    """

    def out(why: str) -> LeftOut:
        return LeftOut(binding=binding, why=why)

    # An ACL for several names is taken if the filter takes the shortest of them: the prefix, or for all names the empty
    # one.
    several = _is_wide(binding)
    name = _begun(binding) if several else binding.resource_name
    if binding.resource_type == "group":
        return None if rules.takes_group(name) else out("groups leaves it out, or sync.group.offsets.enabled is false")
    if binding.resource_type != "topic":
        return None
    if not several:
        if illegal_name(name) is not None or not rules.takes_topic(name):
            return out("the flow does not copy that topic")
        return out("that topic is refused") if name in facts.refused else None
    if not isinstance(innermost(rules.policy), DefaultReplicationPolicy | IdentityReplicationPolicy):
        return out(f"it is not known what {rules.policy_name} makes of a prefix")
    at = bisect_left(topics, name)
    begins = rules.takes_topic(name) or (at < len(topics) and topics[at].startswith(name))
    return None if begins else out("the flow copies no topic that begins so")


def _renamed(rules: AclRules, topics: Sequence[str], binding: AclBinding) -> Iterator[AclBinding]:
    """Return the ACL on the copies.

    An ACL for several topics is added for each copy that a transform names differently.
    """
    if binding.resource_type != "topic":
        yield binding
        return
    source, begun = rules.flow.source, _begun(binding)
    if not _is_wide(binding):
        for copy in copies_of(rules.policy, source, begun):
            yield replace(binding, resource_name=copy)
        return
    base = innermost(rules.policy)
    name = base.format_remote_topic(source, begun)
    # Without a name it is for every topic on the target, too.
    yield replace(binding, resource_name=name, pattern_type="prefixed") if name else binding
    for topic in topics[bisect_left(topics, begun) :] if name else ():
        if not topic.startswith(begun):
            break
        for copy in copies_of(rules.policy, source, topic):
            if copy != base.format_remote_topic(source, topic) and not copy.startswith(name):
                yield replace(binding, resource_name=copy, pattern_type="literal")


def _is_made_of(
    rules: AclRules, facts: AclFacts, topics: Sequence[str], binding: AclBinding, source: AclBinding
) -> bool:
    """Return whether a sync makes ACLs on the resource of `binding` from those on the resource of `source`.

    `topics` are those of the facts, in order.
    """
    kind = binding.resource_type
    if kind != source.resource_type or (rules.sync.policy is AclPolicy.READ and (kind != "topic" or _is_wide(source))):
        return False
    # A topic that is refused now may have been copied before.
    if _foreign(rules, replace(facts, refused=frozenset()), topics, source) is not None:
        return False
    made = {(one.resource_name, one.pattern_type) for one in _renamed(rules, topics, source)}
    return (binding.resource_name, binding.pattern_type) in made


def _is_of_copies(
    rules: AclRules, binding: AclBinding, copies: Sequence[str], others: Sequence[str], unshown: Sequence[str]
) -> bool:
    """Return whether more than the ledger shows that an ACL applies only to what the flow copies to the target.

    The ledger alone is not enough to delete an ACL: a principal that may write to it can name any ACL there. Nothing
    else shows it for the cluster, for transactional ids, and for several groups at once. `unshown` are the `others` and
    those that the ledger alone shows to be copies, unless their names do. The topics are in order.
    """
    if binding.resource_type != "topic":
        return binding.resource_type == "group" and not _is_wide(binding)
    base = innermost(rules.policy)
    named = isinstance(base, DefaultReplicationPolicy) and _begun(binding).startswith(
        base.format_remote_topic(rules.flow.source, "")
    )
    if _held_for(binding, others if named else unshown):
        return False
    return named or bool(_held_for(binding, copies))


def _shown_copies(rules: AclRules, facts: AclFacts) -> list[str]:
    """Return the copies of the source's topics, in order.

    Those of refused topics are left out: others may have written them.
    """
    names = facts.topics - facts.refused
    return sorted({copy for name in names for copy in copies_of(rules.policy, rules.flow.source, name)})


def _is_wide(binding: AclBinding) -> bool:
    return binding.prefixed or binding.resource_name == WILDCARD


def _begun(binding: AclBinding) -> str:
    """Return the prefix of the names that an ACL applies to; empty if it applies to all."""
    return "" if binding.resource_name == WILDCARD and not binding.prefixed else binding.resource_name


def unmapped_sentence(diff: AclDiff) -> Sentence | None:
    """Say that there is no rule for some principals, with the remedy; None if there is a rule for all."""
    if not diff.unmapped:
        return None
    return sentence("acls.unmapped", principals=counted(diff.unmapped), first=diff.unmapped[0])


def wide_sentence(flow: Flow, diff: AclDiff) -> Sentence | None:
    """Say that ACLs to be created also apply to topics of others; None if they do not."""
    if not diff.wide:
        return None
    return sentence(
        "acls.wide",
        cluster=flow.target,
        count=len(diff.others),
        flow=str(flow),
        topics=counted(diff.others),
        acls=counted(diff.wide),
    )


def remarks(rules: AclRules, diff: AclDiff) -> list[Sentence]:
    """Return what a run reports about its ACLs, apart from the changes."""
    target = rules.flow.target
    found = [sentence("acls.left-out", acl=str(out.binding), why=out.why) for out in diff.left_out if out.said]
    wide = wide_sentence(rules.flow, diff)
    if wide is not None:
        found.append(wide)
    again = [change.binding for change in diff.created if change.again]
    if again:
        found.append(sentence("acls.made-again", cluster=target, acls=counted(again)))
    if diff.kept:
        found.append(sentence("acls.kept", cluster=target, acls=counted(diff.kept)))
    if diff.foreign:
        found.append(sentence("acls.foreign", cluster=target, acls=counted(diff.foreign)))
    if diff.bereft:
        acls = counted(diff.bereft)
        found.append(sentence("acls.bereft", source=rules.flow.source, cluster=target, acls=acls))
    return found


def counted(items: Collection[object], shown: int = 3) -> str:
    """Return the first items of a list, and how many more there are."""
    texts = [str(item) for item in items]
    more = f", and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(texts[:shown]) + more
