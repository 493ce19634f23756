"""AWS list prices of us-east-1, on demand, without the free tier; USD.

Each was compared in November 2026 with the pages named beside it; where AWS's own page is not said to be of a date,
the date is that of the other one.
"""

from __future__ import annotations

from decimal import Decimal

SEEN = "AWS list prices of us-east-1, compared in November 2026"

_MILLION = Decimal(1_000_000)

# https://aws.amazon.com/dynamodb/pricing/on-demand/ (standard table class; halved in November 2024);
# https://airbyte.com/data-engineering-resources/dynamodb-pricing (July 2025). No list of 2026 was found.
WRITE_UNIT = Decimal("0.625") / _MILLION
READ_UNIT = Decimal("0.125") / _MILLION

# https://aws.amazon.com/lambda/pricing/ (x86, the first 6 billion GB-seconds of a month);
# https://docs.aws.amazon.com/whitepapers/latest/how-aws-pricing-works/lambda.html, without a date
LAMBDA_REQUEST = Decimal("0.20") / _MILLION
LAMBDA_GB_SECOND = Decimal("0.0000166667")

# https://aws.amazon.com/step-functions/pricing/ (Standard; without a date);
# https://www.wring.co/blog/aws-step-functions-pricing-guide (March 2026)
STATE_TRANSITION = Decimal("0.025") / 1000

# https://aws.amazon.com/api-gateway/pricing/ (HTTP: calls of up to 512 KB; WebSocket: messages of up to 32 KB);
# https://awsforengineers.com/blog/aws-api-gateway-pricing-explained (May 2025),
# https://www.wring.co/blog/aws-api-gateway-pricing-guide (2026)
HTTP_CALL = Decimal("1.00") / _MILLION
SOCKET_MESSAGE = Decimal("1.00") / _MILLION

# https://aws.amazon.com/s3/pricing/ (standard); https://c3x.dev/blog/s3-request-fees-explained, without a date
PAYLOAD_PUT = Decimal("0.005") / 1000
PAYLOAD_GET = Decimal("0.0004") / 1000

# https://aws.amazon.com/eventbridge/pricing/ (custom events, each 64 KB);
# https://cloudburn.io/blog/amazon-eventbridge-pricing (March 2026)
EVENT = Decimal("1.00") / _MILLION
