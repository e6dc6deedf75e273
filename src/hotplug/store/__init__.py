"""What has to outlive a call: idempotency records, receipts, durable events, and the key that seals refs.

```python
async with open_store("sqlite:///hotplug.db") as store:
    begun = await store.begin(principal, "calendar.create", key, digest)
```
"""

from hotplug.store.protocols import (
    Begun,
    CoCommitting,
    EventPage,
    Finished,
    Fresh,
    InDoubt,
    InFlight,
    Mismatch,
    Retention,
    Store,
    StoredReceipt,
    Token,
)
from hotplug.store.sqlite import Durability, SqliteStore
from hotplug.store.urls import memory, open_store

__all__ = [
    "Begun",
    "CoCommitting",
    "Durability",
    "EventPage",
    "Finished",
    "Fresh",
    "InDoubt",
    "InFlight",
    "Mismatch",
    "Retention",
    "SqliteStore",
    "Store",
    "StoredReceipt",
    "Token",
    "memory",
    "open_store",
]
