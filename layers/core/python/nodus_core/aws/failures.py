"""One translation of botocore's errors into ours, by what the caller can do about them."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from nodus_core.kernel.errors import RetryableError, TerminalError

_AGAIN = frozenset(
    {
        "ExecutionLimitExceeded",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "InternalServiceErrorException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServerException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)


def code_of(error: ClientError) -> str:
    """The service's word for what is wrong."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


@contextmanager
def translated(what: str, unavailable: type[RetryableError] = RetryableError) -> Iterator[None]:
    """Raises `unavailable` when the same call may succeed later, else `TerminalError`.

    `what` says what was being done to which object. botocore has tried several times by then.
    """
    try:
        yield
    except ClientError as error:
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code_of(error) in _AGAIN or status >= 500 or status == 429:
            raise unavailable(f"{what}: {error}") from error
        raise TerminalError(f"{what} was refused: {error}") from error
    except (HTTPClientError, ConnectionError) as error:
        raise unavailable(f"{what}: no answer: {error}") from error
    except (
        ResponseParserError
    ) as error:  # not among botocore's own: a proxy's page in place of the service's answer
        raise unavailable(f"{what}: an answer that cannot be read: {error}") from error
    except BotoCoreError as error:
        raise TerminalError(f"{what} could not be asked: {error}") from error
