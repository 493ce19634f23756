"""Where each row stands (design: one table, `pk` and `sk`, one sparse index `due`)."""

import hashlib
import zlib

from nodus_core.journal.store import Key
from nodus_core.kernel.objects import ObjectKey

DUE_SHARDS = tuple(f"due#{n}" for n in range(8))
"""Partitions of the `due` index; a row's shard is a function of its partition."""

LIVE_SHARDS = tuple(f"live#{n}" for n in range(8))
"""Further partitions of that index: the heads of all sandboxes that are not gone, whatever the time (decision 31)."""

LOOSE_VALUES = "loose#"
"""Beginning of the partitions of loose values."""

CHANGE = "chg"
CONVERSATION = "conv"
ACCOUNT = "acct"
KEEP = "keep"
BATCH = "batch"
BEARER = "key"
IMAGE_BUILD = "build"
LEFT_IMAGES = "images"
DUE_NOUNS = frozenset({CONVERSATION, ACCOUNT, KEEP, BATCH, BEARER, IMAGE_BUILD, LEFT_IMAGES})
"""Nouns of partitions that may be due."""


def due_shard(pk: str) -> str:
    return DUE_SHARDS[zlib.crc32(pk.encode()) % len(DUE_SHARDS)]


def live_shard(pk: str) -> str:
    return LIVE_SHARDS[zlib.crc32(pk.encode()) % len(LIVE_SHARDS)]


def object_partition(org: str, project: str, kind: str) -> str:
    return f"obj#{org}#{project}#{kind}"


def object_key(key: ObjectKey) -> Key:
    return Key(object_partition(key.org, key.project, key.kind), key.name)


def batch_key(batch: str) -> Key:
    return Key(f"{BATCH}#{batch}", "head")


def change_partition(org: str, project: str, kind: str) -> str:
    return f"{CHANGE}#{org}#{project}#{kind}"


def is_change(key: Key) -> bool:
    """Whether it is that of an entry of a change log."""
    return key.pk.startswith(f"{CHANGE}#")


def change_key(key: ObjectKey, version: int) -> Key:
    return Key(change_partition(key.org, key.project, key.kind), f"{version:020d}#{key.name}")


def changes_behind(version: int) -> str:
    """The sort key behind all changes of this version, and before those of the next one."""
    return f"{version:020d}$"


def conversation_partition(conversation: str) -> str:
    return f"{CONVERSATION}#{conversation}"


def conversation_key(conversation: str) -> Key:
    return Key(conversation_partition(conversation), "head")


def input_key(conversation: str, seq: int) -> Key:
    return Key(conversation_partition(conversation), f"in#{seq:010d}")


def message_key(conversation: str, key: str) -> Key:
    """The receipt of a message, beside its conversation: it lives as long (NODQ-41)."""
    return Key(conversation_partition(conversation), f"msg#{hashlib.sha256(key.encode()).hexdigest()}")


def turn_key(conversation: str, number: int) -> Key:
    return Key(conversation_partition(conversation), f"turn#{number:08d}")


def keep_key(conversation: str) -> Key:
    """The row that is due when the texts of an ended run have been kept long enough."""
    return Key(f"{KEEP}#{conversation}", "keep")


def run_partition(run: str) -> str:
    return f"run#{run}"


def run_key(run: str) -> Key:
    return Key(run_partition(run), "head")


def task_key(run: str, task: str) -> Key:
    return Key(run_partition(run), f"t#{task}")


def observation_key(run: str, seq: int) -> Key:
    return Key(run_partition(run), f"obs#{seq:010d}")


def sandbox_partition(sandbox: str) -> str:
    return f"sb#{sandbox}"


def open_partition(sandbox: str) -> str:
    """Where the marks of open commands and the asks stand: alone, so that what has ended is not even passed over."""
    return f"open#{sandbox}"


def ask_partition(sandbox: str) -> str:
    """Where the answers to asks stand: a daemon that looks for work does not read them."""
    return f"ask#{sandbox}"


def sandbox_partitions(sandbox: str) -> tuple[str, str, str]:
    """All that a sandbox has."""
    return ask_partition(sandbox), open_partition(sandbox), sandbox_partition(sandbox)


WARM = "warm"
"""The partition of the machines that belong to nobody yet: alone, so that one read finds them all."""


def warm_key(machine: str) -> Key:
    return Key(WARM, machine)


def bound_key(machine: str) -> Key:
    """Whose a machine of the pool has become."""
    return Key(f"bound#{machine}", "bound")


def sandbox_key(sandbox: str) -> Key:
    return Key(sandbox_partition(sandbox), "head")


def command_key(sandbox: str, command: str) -> Key:
    return Key(sandbox_partition(sandbox), f"cmd#{command}")


def open_command_key(sandbox: str, command: str) -> Key:
    """The mark of a command that may not have ended yet: what is open is found without reading what has ended."""
    return Key(open_partition(sandbox), command)


def ask_key(sandbox: str, place: int) -> Key:
    return Key(open_partition(sandbox), f"q#{place:02d}")


def ask_answer_key(sandbox: str, place: int) -> Key:
    return Key(ask_partition(sandbox), f"a#{place:02d}")


def ticket_key(ticket_hash: str) -> Key:
    """The right to connect to a terminal once, by the sha256 of the ticket."""
    return Key(f"ticket#{ticket_hash}", "ticket")


def preview_key(token_hash: str) -> Key:
    """The right to use a port of a sandbox, by the sha256 of its token."""
    return Key(f"view#{token_hash}", "view")


def wire_key(connection: str) -> Key:
    """Whose a connection of the WebSocket API is."""
    return Key(f"wire#{connection}", "wire")


def receipt_key(key: str) -> Key:
    return Key(f"rcpt#{key}", "receipt")


def cooling_key(gate: str) -> Key:
    return Key(f"cool#{gate}", "until")


def loose_value_key(uid: str) -> Key:
    """The note of values in the vault that no object names, by the uid of their Secret."""
    return Key(f"{LOOSE_VALUES}{uid}", "loose")


def image_build_key(build: str) -> Key:
    return Key(f"{IMAGE_BUILD}#{build}", "head")


def left_images_key(uid: str) -> Key:
    """What the builds of a deleted EnvironmentImage have left, by its uid."""
    return Key(f"{LEFT_IMAGES}#{uid}", "left")


def access_key(token_hash: str) -> Key:
    """A bearer key, by the sha256 of its token."""
    return Key(f"{BEARER}#{token_hash}", "key")


def rate_key(name: str) -> Key:
    """The count of how often something is done: of a bearer key, by the sha256 of its token."""
    return Key(f"rate#{name}", "rate")


def identity_partition(arn: str) -> str:
    return f"idn#{arn}"


def identity_key(arn: str, org: str) -> Key:
    """What an AWS identity may do in an organization."""
    return Key(identity_partition(arn), org)


def organization_key(org: str) -> Key:
    return Key(f"org#{org}", "head")


def project_key(org: str, project: str) -> Key:
    return Key(f"org#{org}", f"project#{project}")


def account_partition(account: str) -> str:
    return f"{ACCOUNT}#{account}"


def account_key(account: str) -> Key:
    return Key(account_partition(account), "head")


def waiter_key(account: str, conversation: str) -> Key:
    return Key(account_partition(account), f"wait#{conversation}")


def entry_key(account: str, entry: str) -> Key:
    """A line of an account's ledger: money that was put in, by the key of the request."""
    return Key(account_partition(account), f"entry#{entry}")


def budgets_key(org: str, project: str) -> Key:
    """The accounts of a project's Budgets, in one row, so that who pays is one read."""
    return Key(f"org#{org}", f"budgets#{project}")
