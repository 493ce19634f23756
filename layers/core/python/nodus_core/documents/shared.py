"""Schemas that no model of ours checks: those of Kubernetes, and what the server only answers."""

from nodus_core.documents.parts import (
    LIST_META,
    NOTHING,
    OBJECT_META,
    OPEN,
    PREFIX,
    STATUS,
    Schema,
    fields,
    moment,
    page_of,
    text,
    texts,
    texts_in_order,
    versioned,
    whole,
)
from nodus_core.documents.sandbox_schemas import OF_SANDBOXES

RECEIPT = f"{PREFIX}.MessageReceipt"
STEP = f"{PREFIX}.Step"
TEAM = f"{PREFIX}.Team"
STEPS = f"{PREFIX}.StepList"
LOGIN_ANSWER = f"{PREFIX}.LoginAnswer"

_OBJECT_META = fields(
    "Metadata of an object.",
    {
        "name": text("Unique for its kind in its project."),
        "generateName": text("Beginning of a name that the server completes, where name is left out."),
        "namespace": text("The project."),
        "uid": text("The object's own id: another one of the same name has another."),
        "resourceVersion": text("Version of this object; grows with every change."),
        "generation": whole("How often the spec was written.", format="int64"),
        "creationTimestamp": moment("When it was made."),
        "deletionTimestamp": moment("When its deletion was asked for; it goes when its finalizers have."),
        "labels": texts("Words by which objects are selected."),
        "annotations": texts("Notes of tools and people."),
        "finalizers": texts_in_order("What is still to be cleaned up before the object is gone."),
    },
    **OPEN,
)

_LIST_META = fields(
    "Metadata of a list.",
    {
        "resourceVersion": text("A position from which the list can be watched."),
        "continue": text("Where the next page begins; absent on the last one."),
    },
)

_CAUSE = fields(
    "One thing that is wrong.",
    {
        "reason": text("One word for programs."),
        "message": text("What is wrong, and what to do."),
        "field": text("The field."),
    },
)

_STATUS = fields(
    "What became of a call that gives no object.",
    {
        **versioned("v1", "Status"),
        "metadata": NOTHING,
        "status": text("How it went.", enum=["Success", "Failure"]),
        "reason": text("One word for programs."),
        "message": text("What happened, to which object, and what to do."),
        "code": whole("The HTTP status.", format="int32"),
        "details": fields(
            "What it is about.",
            {
                "name": text("The object."),
                "kind": text("Its kind."),
                "uid": text("Its id."),
                "retryAfterSeconds": whole("When to try again.", format="int32"),
                "causes": {"type": "array", "items": _CAUSE, "description": "Everything that is wrong."},
            },
            **OPEN,
        ),
    },
    "apiVersion",
    "kind",
    "status",
    **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
)

_USAGE = fields(
    "Tokens of model calls.",
    {"inputTokens": whole("Read by the model."), "outputTokens": whole("Written by it.")},
)

_STEP = fields(
    "One thing that a run did.",
    {
        "index": whole("Its place."),
        "name": text("Its name within the run."),
        "kind": text("What kind of work it is."),
        "state": text("How it stands.", enum=["Running", "Completed", "Failed", "Cancelled", "Uncertain"]),
        "guarantee": text(
            "What holds when its worker dies.", enum=["ExactlyOnce", "AtLeastOnce", "AtMostOnce"]
        ),
        "startedAt": moment("When it began."),
        "finishedAt": moment("When it ended."),
        "costUSD": text("What it cost, in US dollars."),
        "costBasis": text(
            "`Reserve`: its provider did not say what it used, and the most that it could cost was booked.",
            enum=["Reserve"],
        ),
        "usage": _USAGE,
        "input": text("The beginning of what it was given: of a command, its line."),
        "preview": text("The beginning of what came out."),
    },
    "index",
    "name",
    "kind",
    "state",
    **OPEN,
)

SHARED: dict[str, Schema] = {
    OBJECT_META: _OBJECT_META,
    LIST_META: _LIST_META,
    STATUS: _STATUS,
    RECEIPT: fields(
        "An accepted message.",
        {
            **versioned("nodus.dev/v1", "Message"),
            "agentRun": text("The run."),
            "messageKey": text("The message's key."),
            "turn": whole("The turn that it gets."),
            "acceptedAt": moment("When it was accepted."),
        },
        "agentRun",
        "messageKey",
        "turn",
        "acceptedAt",
    ),
    STEP: _STEP,
    TEAM: fields(
        "How a run and its subagents stand.",
        {
            **versioned("nodus.dev/v1", "Team"),
            "metadata": NOTHING,
            "summary": fields(
                "The run itself.",
                {
                    "state": text("The run's phase."),
                    "message": text("How it stands, in words."),
                    "action": text(
                        "What a person can do next.",
                        enum=["None", "ViewAnswer", "SendMessage", "ManageTasks", "InspectRun"],
                    ),
                    "counts": {
                        "type": "object",
                        "description": "How many subagents there are, by how they stand.",
                        "additionalProperties": {"type": "integer"},
                    },
                    "peakParallelModelCalls": whole("Most model calls at one time."),
                },
                "state",
                "message",
                "action",
                "counts",
            ),
            "items": {
                "type": "array",
                "description": "The subagents.",
                "items": {"type": "object", **OPEN},
            },
            "verification": fields("What was checked.", {"state": text("How the check stands.")}, **OPEN),
        },
        "summary",
        "items",
        "verification",
    ),
    **OF_SANDBOXES,
    STEPS: page_of(
        "StepList", "A page of a run's steps.", "The steps of the page, in their order.", {"$ref": STEP}
    ),
    LOGIN_ANSWER: fields(
        "A key that was given for a login.",
        {
            **versioned("nodus.dev/v1", "Login"),
            "metadata": NOTHING,
            "spec": fields(
                "What was agreed.",
                {
                    "organization": text("The organization whose key it is."),
                    "ttl": text("How long the key lives, as a duration."),
                },
                "organization",
                "ttl",
            ),
            "status": fields(
                "What was given.",
                {
                    "token": text("The bearer token, which is shown here only."),
                    "expiresAt": moment("When it stops to work."),
                    "apiKey": text("Name of the ApiKey whose token it is: to delete that revokes it."),
                    "identity": text("The ARN that is mapped to the organization."),
                    "projects": texts_in_order("Names of the projects that it reaches, or `*` for all."),
                    "permissions": texts_in_order("What it may do: scopes and roles."),
                },
                "token",
                "expiresAt",
                "apiKey",
                "identity",
                "projects",
                "permissions",
            ),
        },
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
    ),
}
"""Each under its name."""
