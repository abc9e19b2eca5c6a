"""How large may a submission be, in every direction?"""

from msgspec import Struct

from ..store.position import INDEX_LIMIT


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds at the door; whatever is accepted within them can always be filed, published, retried and buried.

    Bytes count UTF-8. A due record adds less than 1 KiB to its payload and headers, so the defaults stay far below a
    broker's usual limit of 1,048,588 bytes a record.
    """

    payload_bytes: int = 65_536
    id_bytes: int = 256
    receipt_bytes: int = 256
    headers: int = 64
    header_name_bytes: int = 128
    header_bytes: int = 8_192
    nesting: int = 64
    batch_items: int = INDEX_LIMIT
    attempts: int = 100
    timeout_ms: int = 30 * 86_400_000
    retry_ms: int = 30 * 86_400_000
    retry_factor: float = 100.0

    def __post_init__(self) -> None:
        """Check what the layouts of record and position can hold."""
        assert 0 < self.batch_items <= INDEX_LIMIT, "an index has 14 bits"
        assert self.header_bytes + 16 * self.headers < 1 << 16, "a record counts its headers' bytes in 16 bits"
        assert self.payload_bytes < 1 << 32, "a record counts its payload's bytes in 32 bits"
        assert 65 + self.id_bytes < 1 << 15, "a record counts its key's bytes in 16 bits"
        assert 0 < self.attempts < 1 << 15, "a record counts attempts in 16 bits"
