"""Model calls: messages, targets, the operator's catalogue, prices, routing and wire formats. Pure: no I/O.

`nodus_core.providers` sends what is made here.
"""

from nodus_core.inference.errors import (
    ContextTooLong,
    ModelNotOffered,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelUnavailable,
)
from nodus_core.inference.exchange import (
    DEFAULT_MAX_TOKENS,
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolResult,
    ToolResults,
    ToolSpec,
    Usage,
    UserMessage,
    message_from_record,
)
from nodus_core.inference.target import LongPrompt, Prices, Target, Wire
from nodus_core.inference.wires.calls import cut_text

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "AssistantMessage",
    "ContextTooLong",
    "LongPrompt",
    "Message",
    "ModelNotOffered",
    "ModelOutcomeUnknown",
    "ModelRefusedRequest",
    "ModelReply",
    "ModelRequest",
    "ModelUnavailable",
    "Prices",
    "StopReason",
    "Target",
    "ToolCall",
    "ToolResult",
    "ToolResults",
    "ToolSpec",
    "Usage",
    "UserMessage",
    "Wire",
    "cut_text",
    "message_from_record",
]
