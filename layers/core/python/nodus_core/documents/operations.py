"""Every call of the API as data: what the documents say of it, and what the routes must be."""

from collections.abc import Iterator

from nodus_core.documents.calls import (
    ALWAYS,
    BASE,
    CONTINUE,
    DRY_RUN,
    FORCE,
    KEY,
    LIMIT,
    OF_BODIES,
    ONE,
    ORGANIZATION,
    READING,
    REFUSAL,
    WRITING,
    Answer,
    Operation,
    Paths,
)
from nodus_core.documents.parts import STATUS
from nodus_core.documents.sandbox_operations import below_sandboxes, files_of_sandboxes, of_images
from nodus_core.documents.schemas import name_of
from nodus_core.documents.shared import LOGIN_ANSWER
from nodus_core.resources.kinds import BY_NAME, KINDS, Kind
from nodus_core.resources.media_types import APPLY, JSON, MERGE, TEXT


def operations() -> Iterator[Operation]:
    """Every call but those that read what the API says of itself."""
    for kind in KINDS:
        yield from of_kind(kind)
    yield from below_runs()
    yield from below_sandboxes()
    yield from of_images()
    yield from files_of_sandboxes()
    yield log_in()


def of_kind(kind: Kind) -> Iterator[Operation]:
    """The calls that a kind has."""
    paths, own = Paths(kind), name_of(kind.name)
    one = f"{'an' if kind.name[0] in 'AEIOU' else 'a'} {kind.name}"
    shown, new = Answer("The object.", own), Answer("The new object.", own)
    page = Answer("A page, or changes where they are watched.", name_of(kind.list_name))
    gone = {200: Answer("It is gone.", STATUS), 202: Answer("It is going.", own)}
    body, patch = {JSON: own}, {APPLY: own, MERGE: own}
    yield paths.call("GET", "", "list", f"List or watch {kind.plural}", {200: page}, READING)
    if kind.namespaced:
        yield paths.everywhere(page)
    yield paths.call("GET", ONE, "get", f"Read {one}", {200: shown})
    yield paths.call("PUT", ONE, "put", f"Replace {one}", {200: shown}, WRITING, body)
    yield paths.call(
        "PATCH",
        ONE,
        "patch",
        f"Apply or change {one}",
        {200: shown, 201: new},
        (*WRITING, FORCE),
        patch,
    )
    if kind.is_made_here:
        yield paths.call("POST", "", "post", f"Create {one}", {200: shown, 201: new}, (*WRITING, KEY), body)
        yield paths.call("DELETE", ONE, "delete", f"Delete {one}", gone, (DRY_RUN,))


def below_runs() -> Iterator[Operation]:
    """What stands below a run."""
    paths = Paths(BY_NAME["AgentRun"])
    shown, heard = name_of("AgentRun"), name_of("MessageReceipt")
    taken = {200: Answer("As it is.", shown), 202: Answer("It is taken.", shown)}
    accepted = {200: Answer("It was accepted before.", heard), 202: Answer("Accepted.", heard)}
    steps = {200: Answer("A page of steps.", name_of("StepList"))}
    answer = {
        200: Answer("The whole answer.", None, TEXT),
        307: Answer("It is large: read it at Location, without the credential."),
    }
    yield paths.call("POST", f"{ONE}/cancel", "connect", "Cancel a run", taken)
    yield paths.call(
        "POST",
        f"{ONE}/messages",
        "connect",
        "Send a run its next prompt",
        accepted,
        (),
        {JSON: name_of("Message")},
    )
    yield paths.call(
        "POST",
        f"{ONE}/resolution",
        "connect",
        "Say what became of a step",
        taken,
        (),
        {JSON: name_of("Stated")},
    )
    yield paths.call("GET", f"{ONE}/steps", "connect", "List what a run did", steps, (LIMIT, CONTINUE))
    team = {200: Answer("The team view.", name_of("Team"))}
    yield paths.call("GET", f"{ONE}/team", "connect", "See how a run and its subagents stand", team)
    yield paths.call("GET", f"{ONE}/answer", "connect", "Read a run's answer", answer)


def log_in() -> Operation:
    """The call of whoever has no credential yet."""
    refused = (400, 401, 403, 409, *OF_BODIES, *ALWAYS)
    return Operation(
        method="POST",
        path=f"{BASE}/logins",
        id="createLogin",
        summary="Get a key for some hours by an AWS identity",
        action="post",
        kind="Login",
        plural="logins",
        parameters=(ORGANIZATION,),
        bodies={JSON: name_of("Login")},
        answers={201: Answer("The key.", LOGIN_ANSWER), **dict.fromkeys(refused, REFUSAL)},
        is_open=True,
    )
