"""STS, asked in somebody else's name: a request that its client has signed is sent as it is."""

from functools import cached_property
from typing import Any

import botocore.session
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session
from botocore.parsers import ResponseParserError, create_parser

from nodus_core.access.signed_calls import Judged
from nodus_core.aws.failures import translated
from nodus_core.kernel.errors import Refusal, RetryableError, TerminalError

_OK = 200
_REFUSED = range(400, 500)
_TOO_MANY = 429
_BROKEN = 500


class StsIdentities:
    """`Identities` of AWS. `session` sends without proxies of the environment and follows no redirect."""

    def __init__(self, session: URLLib3Session | None = None) -> None:
        self._session = session or URLLib3Session(timeout=(2, 5))

    def whose(self, call: Judged) -> str:
        status, headers, body = self._send(call)
        try:
            answer = create_parser("query").parse(
                {"status_code": status, "headers": headers, "body": body}, self._shape
            )
        except ResponseParserError as error:
            raise RetryableError(f"STS answered {status} with what is no answer: {error}") from error
        code = str(answer.get("Error", {}).get("Code", "Unknown"))
        if status == _OK and "Arn" in answer:
            return str(answer["Arn"])
        if status == _TOO_MANY or status >= _BROKEN or code.startswith("Throttling"):
            raise RetryableError(f"STS answered {status} ({code})")
        if status in _REFUSED:
            raise Refusal("Unauthorized", f"AWS does not accept the signed request ({code}); sign a new one")
        raise TerminalError(f"STS answered {status}, which is none of its answers")

    def _send(self, call: Judged) -> tuple[int, dict[str, str], bytes]:
        request = AWSPreparedRequest("POST", call.url, call.headers, call.body, stream_output=False)
        with translated("asking STS whose a request is"):
            answer = self._session.send(request)
        return answer.status_code, dict(answer.headers), answer.content

    @cached_property
    def _shape(self) -> Any:
        service = botocore.session.get_session().get_service_model("sts")
        return service.operation_model("GetCallerIdentity").output_shape
