"""What a fresh deployment needs before a person can use it: providers' keys, then organization, project, key."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import yaml

from localstack import daemons
from localstack.endpoints import Cloud, write_private
from localstack.paths import State
from localstack.processes import ProcessError

CONTEXT = "local"
ORGANIZATION = "default"
PROJECT = "default"
TRIES = 5


def furnish(state: State, cloud: Cloud) -> None:
    """Bring the deployed app into a state in which the CLI works; repeating it changes nothing.

    Raises:
        ProcessError: the app refused an operation; the message says which.
    """
    admin(cloud, operation="CreateOrganization", organization=ORGANIZATION)
    admin(cloud, operation="CreateProject", organization=ORGANIZATION, project=PROJECT)
    admin(cloud, operation="PublishTemplates")
    ensure_key(state, cloud)


PROVIDERS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


def fill_providers(state: State, cloud: Cloud) -> None:
    """Write the providers' secret (protocols §4) when it is not yet what the environment says; what its operator has put
    beside the providers stays."""
    client = boto3.client("secretsmanager", **cloud.client_arguments())
    secret = cloud.output("ProvidersSecretArn")
    held = json.loads(client.get_secret_value(SecretId=secret)["SecretString"])
    others = {name: value for name, value in held.items() if name not in PROVIDERS}
    wanted = {**others, **providers(state)}
    if held != wanted:
        client.put_secret_value(SecretId=secret, SecretString=json.dumps(wanted))


def providers(state: State) -> dict[str, Any]:
    """Each provider's key: the real one of the environment, else the scripted model server."""
    found: dict[str, Any] = {}
    for name, variable in PROVIDERS.items():
        key = os.environ.get(variable, "").strip()
        scripted = scripted_provider(state, name)
        if key:
            found[name] = {"apiKey": key}
        elif scripted is not None:
            found[name] = scripted
    return found


def scripted_provider(state: State, name: str) -> dict[str, Any] | None:
    """How to reach the scripted model server in the place of a provider, None when it does not run."""
    port = daemons.scripted_port(state)
    if port is None:
        return None
    key = daemons.scripted_key_file(state).read_text().strip()
    path = "/v1" if name == "openai" else ""
    return {"baseURL": f"http://127.0.0.1:{port}{path}", "apiKey": key, "scripted": True}


def admin(cloud: Cloud, **request: Any) -> dict[str, Any]:
    """Invoke the administration function (protocols §5), again while the store of a busy machine is too slow.

    Raises:
        ProcessError: it raised, or answered with an error.
    """
    client = boto3.client("lambda", **cloud.client_arguments())
    name, body = cloud.output("AdminFunctionName"), dict[str, Any]()
    for _ in range(TRIES):
        answer = client.invoke(FunctionName=name, Payload=json.dumps(request).encode())
        body = json.load(answer["Payload"]) or {}
        if "FunctionError" not in answer and "error" not in body:
            return body
        if body.get("errorType") != "StoreUnavailable":
            break
    raise ProcessError(f"{request['operation']} failed: {json.dumps(body)[:2000]}")


def ensure_key(state: State, cloud: Cloud) -> None:
    """A key in this cloud's context of the client configuration, made once for each state folder.

    Raises:
        ProcessError: the configuration cannot be read or written; no key was made then.
    """
    path = configuration_path()
    configuration = read_configuration(path)
    name = context_name(state, configuration)
    issued = state.deployment / "key.sha256"
    context = configuration["contexts"].get(name) or {}
    token = context.get("token", "")
    if not (token and issued.is_file() and issued.read_text() == digest(token)):
        save_configuration(path, configuration)  # before a key is made that could not be kept
        answer = admin(
            cloud,
            operation="CreateKey",
            organization=ORGANIZATION,
            projects=["*"],
            permissions=["*"],
            name=f"local-{secrets.token_hex(3)}",  # the earlier one, if its token was lost, keeps its name
        )
        token = answer["token"]
        write_private(issued, digest(token))
    own = {"server": cloud.api_url, "org": ORGANIZATION, "project": PROJECT, "token": token}
    own |= {"tlsServer": cloud.tls_endpoint, "caFile": str(state.tls_authority)}
    wanted = {**context, **own, "state": str(state.folder)}
    if context != wanted or not configuration.get("current-context"):
        configuration["contexts"][name] = wanted
        configuration["current-context"] = configuration.get("current-context") or name
        save_configuration(path, configuration)
        print(f"client configuration: context {name!r} in {path}")
    if configuration["current-context"] != name:
        print(f"note: the current context is {configuration['current-context']!r}, not {name!r} ({path})")


def context_name(state: State, configuration: Mapping[str, Any]) -> str:
    """The context of this cloud: the one that names its folder, else `local`, unless that is another cloud's."""
    contexts: Mapping[str, Any] = configuration["contexts"]
    for name, context in contexts.items():
        if isinstance(context, dict) and context.get("state") == str(state.folder):
            return name
    holder = (contexts.get(CONTEXT) or {}).get("state")
    if holder is not None and State(Path(holder)).cloud_file.exists():
        return f"{CONTEXT}-{digest(str(state.folder))[:6]}"
    return CONTEXT


def configuration_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The client configuration (protocols §7).

    Raises:
        ProcessError: there is no home folder to look in.
    """
    if environ.get("NODUS_CONFIG"):
        return Path(environ["NODUS_CONFIG"])
    folder = Path(environ.get("XDG_CONFIG_HOME") or "")
    if not folder.is_absolute():  # a relative one is to be ignored, the XDG base directory specification says
        folder = home_folder(environ) / ".config"
    return folder / "nodus" / "config.yaml"


def home_folder(environ: Mapping[str, str]) -> Path:
    """HOME, else the home of the user's entry in the list of users.

    Raises:
        ProcessError: there is neither.
    """
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ProcessError(
            "there is no home folder for the client's configuration: set HOME, or name a file by NODUS_CONFIG"
        ) from error


def read_configuration(path: Path) -> dict[str, Any]:
    """The configuration's contents, with `contexts` always a mapping.

    Raises:
        ProcessError: the file is there and is not a configuration; it is never overwritten then.
    """
    try:
        data = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        data = {}
    except (OSError, yaml.YAMLError) as error:
        raise ProcessError(
            f"{path} cannot be read: {error}; mend it, or name another file by NODUS_CONFIG"
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("contexts") or {}, dict):
        raise ProcessError(
            f"{path} is not a client configuration; mend it, or name another file by NODUS_CONFIG"
        )
    return {**data, "contexts": dict(data.get("contexts") or {})}


def save_configuration(path: Path, configuration: Mapping[str, Any]) -> None:
    """Write the client configuration.

    Raises:
        ProcessError: it cannot be written.
    """
    try:
        write_private(path, yaml.safe_dump(dict(configuration), sort_keys=False))
    except OSError as error:
        raise ProcessError(
            f"the client's configuration {path} cannot be written: {error.strerror or error}; "
            "name another file by NODUS_CONFIG"
        ) from error


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
