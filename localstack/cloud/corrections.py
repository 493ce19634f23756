"""Where MiniStack 1.5.33 departs from AWS in ways that the unmodified app would notice.

Each correction says what AWS does. They replace module attributes of MiniStack, so its version is pinned to
one exact release; `install` fails loudly when an upgrade has moved what they replace.
"""

from __future__ import annotations

import hmac
import importlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from localstack.cloud.durable import sync_folder, write_file

RESTARTED = "States.ServiceRestart"
"""How MiniStack calls the end of an execution that ran when it stopped."""


class MovedError(Exception):
    """MiniStack no longer has what a correction replaces; look at its release notes and at the correction."""


def install() -> None:
    """Apply every correction; call once, before serving.

    Raises:
        MovedError: this MiniStack is not the one that the corrections were written for.
    """
    close_root_keys()
    correct_secret_references()
    correct_changes_of_outputs()
    read_streams_from_their_start()
    keep_reserved_concurrency()
    tell_of_stopped_tasks()
    judge_tags_of_tasks()
    note_ended_executions()
    keep_objects()


def close_root_keys() -> None:
    """Only our own key is the root's, and its signature is checked like any other.

    As it comes, MiniStack takes an empty key, `test` and every number of twelve digits for the root, and lets
    root keys pass without looking at their signature: whoever reaches its port may do everything.
    """
    evaluator: Any = importlib.import_module("ministack.core.iam_evaluator")
    sts: Any = importlib.import_module("ministack.services.sts")
    own_key = os.environ["AWS_ACCESS_KEY_ID"]

    def is_own_key(access_key_id: str) -> bool:
        return hmac.compare_digest(access_key_id.encode(), own_key.encode())

    def skips_signature_check(_access_key_id: str) -> bool:
        return False

    for module in (evaluator, sts):
        attribute(module, "is_root_access_key")
        module.is_root_access_key = is_own_key
    attribute(evaluator, "_is_root_key")
    evaluator._is_root_key = skips_signature_check


def correct_secret_references() -> None:
    """`Ref` of a secret is its ARN on AWS, its name in MiniStack.

    CDK grants access by that reference: with a name in the place of an ARN, IAM would refuse every read.
    """
    provisioners: Any = importlib.import_module("ministack.services.cloudformation.provisioners")
    handlers = attribute(provisioners, "_RESOURCE_HANDLERS").get("AWS::SecretsManager::Secret")
    if not handlers or not {"create", "update", "delete"} <= set(handlers):
        raise MovedError("handlers of AWS::SecretsManager::Secret")
    create, update, delete = handlers["create"], handlers["update"], handlers["delete"]

    def create_by_arn(logical_id: str, properties: dict[str, Any], stack: str) -> tuple[str, dict[str, Any]]:
        _, attributes = create(logical_id, properties, stack)
        return attributes["Arn"], attributes

    def update_by_arn(physical_id: str, *rest: Any, **named: Any) -> tuple[str, dict[str, Any]]:
        _, attributes = update(secret_name(physical_id), *rest, **named)
        return attributes["Arn"], attributes

    def delete_by_arn(physical_id: str, properties: dict[str, Any]) -> None:
        delete(secret_name(physical_id), properties)

    handlers.update(create=create_by_arn, update=update_by_arn, delete=delete_by_arn)


def correct_changes_of_outputs() -> None:
    """A template that differs in its outputs only is an update on AWS, "no changes" in MiniStack.

    A stack that begins to use an export of another, as CDK arranges it, would not find it.
    """
    changesets: Any = importlib.import_module("ministack.services.cloudformation.changesets")
    diff = attribute(changesets, "_diff_resources")
    resolve = attribute(changesets, "_resolve_props_for_diff")

    def resolve_with_outputs(template: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return {**resolve(template, *rest), "Outputs": (template or {}).get("Outputs", {})}

    def diff_with_outputs(old: dict[str, Any], new: dict[str, Any], *rest: Any) -> list[Any]:
        changes = diff(old, new, *rest)
        if changes or old.get("Outputs", {}) == new.get("Outputs", {}):
            return changes
        return [unchanged(name, resource) for name, resource in list(new["Resources"].items())[:1]]

    changesets._resolve_props_for_diff = resolve_with_outputs
    changesets._diff_resources = diff_with_outputs


def read_streams_from_their_start() -> None:
    """A consumer of a stream goes on after a restart; MiniStack's would wait for as many records as it had read.

    It saves how far each event source mapping has read of a table's stream, but not the stream: the next one
    begins at 0, and its first records lie before the saved position. Here every mapping begins at 0 with it.
    """
    service: Any = importlib.import_module("ministack.services.lambda_svc")
    restore = attribute(service, "_restore_esm_positions")
    attribute(service, "_dynamodb_stream_positions")

    def restore_from_start(store: Any, positions: Any) -> None:
        restore(store, positions)
        if store is service._dynamodb_stream_positions:
            for key in list(store._data):
                store._data[key] = 0

    service._restore_esm_positions = restore_from_start


def keep_reserved_concurrency() -> None:
    """`ReservedConcurrentExecutions` of a template, which MiniStack leaves out.

    It keeps lines that wait from taking every place of those that wake them. A machine has fewer places than
    an account: a reservation is half of them at most.
    """
    provisioners: Any = importlib.import_module("ministack.services.cloudformation.provisioners")
    service: Any = importlib.import_module("ministack.services.lambda_svc")
    handlers = attribute(provisioners, "_RESOURCE_HANDLERS").get("AWS::Lambda::Function")
    if not handlers or not {"create", "update"} <= set(handlers):
        raise MovedError("handlers of AWS::Lambda::Function")
    create, update = handlers["create"], handlers["update"]
    places: int = attribute(service, "_ACCOUNT_CONCURRENCY_CAP")

    def reserve(name: str, properties: dict[str, Any]) -> None:
        wanted = properties.get("ReservedConcurrentExecutions")
        most = max(1, places // 2) if places else None
        reserved = None if wanted is None else int(wanted)
        service._functions[name]["concurrency"] = min(reserved, most) if reserved and most else reserved

    def create_reserved(logical_id: str, properties: dict[str, Any], stack: str) -> Any:
        made = create(logical_id, properties, stack)
        reserve(made[0], properties)
        return made

    def update_reserved(physical_id: str, old: Any, new: dict[str, Any], *rest: Any, **named: Any) -> Any:
        made = update(physical_id, old, new, *rest, **named)
        reserve(made[0], new)
        return made

    handlers.update(create=create_reserved, update=update_reserved)


def tell_of_stopped_tasks() -> None:
    """A task of ECS that stops is told of on the bus, as on AWS: whoever waits in its sandbox hears of it at once."""
    service: Any = importlib.import_module("ministack.services.ecs")
    bus: Any = importlib.import_module("ministack.services.eventbridge")
    mark, shown = attribute(service, "_mark_task_stopped"), attribute(service, "_sanitize")
    attribute(bus, "_put_events")

    def mark_and_tell(task_arn: str, task: dict[str, Any], *rest: Any, **named: Any) -> bool:
        stopped = mark(task_arn, task, *rest, **named)
        if stopped:
            detail = json.dumps(shown(task), default=str)
            entry = {"Source": "aws.ecs", "DetailType": "ECS Task State Change", "Detail": detail}
            bus._put_events({"Entries": [{**entry, "Resources": [task_arn]}]}, allow_aws_source=True)
        return stopped

    service._mark_task_stopped = mark_and_tell


def judge_tags_of_tasks() -> None:
    """A right to tag a task of ECS is judged by that task, as on AWS, and not by `*`, which only a wild right covers."""
    rights: Any = importlib.import_module("ministack.core.iam_actions")
    judged_by = attribute(rights, "extract_resource_arn")

    def judged(
        service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any, **named: Any
    ) -> Any:
        found = judged_by(service, method, path, headers, body, *rest, **named)
        if service != "ecs" or found != "*":
            return found
        try:
            return json.loads(body)["resourceArn"]
        except (ValueError, KeyError, TypeError):
            return found

    rights.extract_resource_arn = judged


_ended: list[dict[str, Any]] = []


def note_ended_executions() -> None:
    """An execution that ended with the emulator is told of, like every change of status on AWS.

    It comes back `FAILED`, of which MiniStack says nothing. `tell_of_ended_executions` does, once somebody can
    hear it.
    """
    service: Any = importlib.import_module("ministack.services.stepfunctions")
    restore, now = attribute(service, "_restore_state"), attribute(service, "now_iso")
    attribute(service, "_emit_execution_status_event")

    def restore_and_note(data: Any) -> None:
        begun = now()
        restore(data)
        _ended.extend(
            execution
            for execution in service._executions.all_values()
            if execution.get("error") == RESTARTED and execution["stopDate"] >= begun
        )

    service._restore_state = restore_and_note


def tell_of_ended_executions() -> int:
    """Tell the bus of the executions that the last restart ended; how many there were. Once is enough."""
    service: Any = importlib.import_module("ministack.services.stepfunctions")
    told = 0
    while _ended:
        service._emit_execution_status_event(_ended.pop())
        told += 1
    return told


def keep_objects() -> None:
    """An object whose put was answered is on disk; MiniStack syncs none, and answers 200 when it could write none.

    A put that could not be kept is an error of the server, after which clients try again.
    """
    service: Any = importlib.import_module("ministack.services.s3")
    persist = attribute(service, "_persist_object")
    attribute(service, "_atomic_write")
    root = Path(attribute(service, "DATA_DIR"))
    failed = threading.local()

    def write_durably(path: str, data: Any, *, text: bool = False) -> None:
        try:
            write_file(Path(path), data.encode() if text else bytes(data))
            for folder in Path(path).parent.parents:  # those that were made for it, too
                if root in (folder, *folder.parents):
                    sync_folder(folder)
        except OSError as error:
            failed.error = error
            raise

    def persist_or_fail(bucket: str, key: str, thing: Any) -> None:
        failed.error = None
        persist(bucket, key, thing)  # catches what it meets
        if failed.error is not None:
            raise failed.error

    service._atomic_write = write_durably
    service._persist_object = persist_or_fail


def unchanged(name: str, resource: dict[str, Any]) -> dict[str, Any]:
    """A change of nothing: MiniStack executes no change set without changes, AWS does."""
    change = {"Action": "Modify", "LogicalResourceId": name, "ResourceType": resource.get("Type", "")}
    return {"ResourceChange": {**change, "Replacement": "False", "Scope": [], "Details": []}}


def secret_name(reference: str) -> str:
    """The name in a secret's ARN, which ends with a hyphen and six characters; a name stays as it is."""
    if not reference.startswith("arn:"):
        return reference
    return reference.split(":", 6)[6].rpartition("-")[0]


def attribute(module: Any, name: str) -> Any:
    """`module.name`.

    Raises:
        MovedError: there is none.
    """
    if not hasattr(module, name):
        raise MovedError(f"{module.__name__}.{name}")
    return getattr(module, name)
