"""Instance types with NVIDIA GPUs that sandboxes may run on: what a machine has, and what an hour of it costs."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class GpuType:
    """One EC2 instance type, x86.

    Attributes:
        count: its GPUs.
        cpu: its virtual processors.
        memory: GiB of memory that sandboxes may have of it; the rest is the system's and the ECS agent's.
        usd: US dollars an hour, on demand, Linux, us-east-1.
    """

    count: int
    cpu: int
    memory: int
    usd: Decimal


# The price of g5.xlarge was compared with a list of June 2026, the others with none: what counts is on AWS's own page, and
# the setting gpuPrice takes it, or another region's.
# An eighth of the memory is left to the machine.
GPU_TYPES = {
    "g4dn.xlarge": GpuType(1, 4, 14, Decimal("0.526")),
    "g4dn.2xlarge": GpuType(1, 8, 28, Decimal("0.752")),
    "g4dn.12xlarge": GpuType(4, 48, 168, Decimal("3.912")),
    "g5.xlarge": GpuType(1, 4, 14, Decimal("1.006")),
    "g5.2xlarge": GpuType(1, 8, 28, Decimal("1.212")),
    "g5.12xlarge": GpuType(4, 48, 168, Decimal("5.672")),
    "g6.xlarge": GpuType(1, 4, 14, Decimal("0.8048")),
    "g6.2xlarge": GpuType(1, 8, 28, Decimal("0.9776")),
    "g6.12xlarge": GpuType(4, 48, 168, Decimal("4.6016")),
}
