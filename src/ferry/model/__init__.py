"""Ferry's terms as values: flows, plans, slices, segments, receipts. Frozen; offsets and times are int."""

from ferry.model.acl import EVERYBODY, WILDCARD, AclBinding, AclChange
from ferry.model.adoption import Adoption, Predecessor
from ferry.model.ages import AgeStats, all_ages
from ferry.model.checkpoint import Checkpoint, Found
from ferry.model.compression import Codec, Compression
from ferry.model.content import RecordContent
from ferry.model.difference import Difference, DifferenceKind, NotCompared, NotComparedKind, Range, RecordSample
from ferry.model.era import Era
from ferry.model.flow import LIVE, Flow, TopicPartition
from ferry.model.gap import Gap, Resolution
from ferry.model.group import NO_STATE, CommittedOffset, DescribedGroup, GroupKind, ListedGroup, Member
from ferry.model.group_outcome import WANTED, GroupOutcome, Left, Why
from ferry.model.lane import LaneKind, check_lane, lane_kind, scratch_lane, scratch_topic
from ferry.model.mirror import GroupCheckpoint, Heartbeat, OffsetSync
from ferry.model.plan import PLAN_VERSION, ChangeKind, Plan, Slice, TopicChange, Unsupported
from ferry.model.reads import Epochs, Offsets, Reads
from ferry.model.receipt import Position, Receipt
from ferry.model.record import Fate, LedgerRecord, Record
from ferry.model.refusal import Refusal, RefusalKind
from ferry.model.run import Attempt, OpenedRun, Origin, Pause, RunRecord
from ferry.model.segment import Segment, joined
from ferry.model.sentence import Fact, Sentence, code_of, facts_of, located, sentence_of, with_text
from ferry.model.sifted import NOTHING_FILTERED, FilterCounts
from ferry.model.throttled import NOT_THROTTLED, ThrottleTime
from ferry.model.topic_id import parse_topic_id, topic_id_of, topic_id_text
from ferry.model.verified import OWN_READER, Begin, RunVerified, Verified, VerifyMode
from ferry.model.window import OffsetWindow, TimeWindow, TopicWindow, TopicWindows, Window, WindowRecord

__all__ = [
    "EVERYBODY",
    "LIVE",
    "NOTHING_FILTERED",
    "NOT_THROTTLED",
    "NO_STATE",
    "OWN_READER",
    "PLAN_VERSION",
    "WANTED",
    "WILDCARD",
    "AclBinding",
    "AclChange",
    "Adoption",
    "AgeStats",
    "Attempt",
    "Begin",
    "ChangeKind",
    "Checkpoint",
    "Codec",
    "CommittedOffset",
    "Compression",
    "DescribedGroup",
    "Difference",
    "DifferenceKind",
    "Epochs",
    "Era",
    "Fact",
    "Fate",
    "FilterCounts",
    "Flow",
    "Found",
    "Gap",
    "GroupCheckpoint",
    "GroupKind",
    "GroupOutcome",
    "Heartbeat",
    "LaneKind",
    "LedgerRecord",
    "Left",
    "ListedGroup",
    "Member",
    "NotCompared",
    "NotComparedKind",
    "OffsetSync",
    "OffsetWindow",
    "Offsets",
    "OpenedRun",
    "Origin",
    "Pause",
    "Plan",
    "Position",
    "Predecessor",
    "Range",
    "Reads",
    "Receipt",
    "Record",
    "RecordContent",
    "RecordSample",
    "Refusal",
    "RefusalKind",
    "Resolution",
    "RunRecord",
    "RunVerified",
    "Segment",
    "Sentence",
    "Slice",
    "ThrottleTime",
    "TimeWindow",
    "TopicChange",
    "TopicPartition",
    "TopicWindow",
    "TopicWindows",
    "Unsupported",
    "Verified",
    "VerifyMode",
    "Why",
    "Window",
    "WindowRecord",
    "all_ages",
    "check_lane",
    "code_of",
    "facts_of",
    "joined",
    "lane_kind",
    "located",
    "parse_topic_id",
    "scratch_lane",
    "scratch_topic",
    "sentence_of",
    "topic_id_of",
    "topic_id_text",
    "with_text",
]
