"""AWS list prices of us-east-1, on demand, without the free tier; USD. As published in 2025: look again before use."""

from __future__ import annotations

from decimal import Decimal

SEEN = "AWS list prices of us-east-1, published 2025"

_MILLION = Decimal(1_000_000)

# https://aws.amazon.com/dynamodb/pricing/on-demand/ (standard table class; since the reduction of November 2024)
WRITE_UNIT = Decimal("0.625") / _MILLION
READ_UNIT = Decimal("0.125") / _MILLION

# https://aws.amazon.com/lambda/pricing/ (x86)
LAMBDA_REQUEST = Decimal("0.20") / _MILLION
LAMBDA_GB_SECOND = Decimal("0.0000166667")

# https://aws.amazon.com/step-functions/pricing/ (Standard)
STATE_TRANSITION = Decimal("0.025") / 1000

# https://aws.amazon.com/api-gateway/pricing/ (HTTP: calls of up to 512 KB; WebSocket: messages of up to 32 KB)
HTTP_CALL = Decimal("1.00") / _MILLION
SOCKET_MESSAGE = Decimal("1.00") / _MILLION

# https://aws.amazon.com/s3/pricing/ (standard)
PAYLOAD_PUT = Decimal("0.005") / 1000
PAYLOAD_GET = Decimal("0.0004") / 1000

# https://aws.amazon.com/eventbridge/pricing/ (custom events)
EVENT = Decimal("1.00") / _MILLION
