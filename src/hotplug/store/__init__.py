"""What has to outlive a call: idempotency records, receipts, durable events, the key that seals refs; and the settings.

```python
async with open_store("sqlite:///hotplug.db") as store:
    begun = await store.begin(principal, "calendar.create", key, digest)
```
"""

from hotplug.store.default import STORE_VARIABLE, default_store, default_store_url
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
from hotplug.store.settings import Kept, Looked, Saved, SettingsFile, default_settings_path
from hotplug.store.sqlite import Durability, SqliteStore
from hotplug.store.urls import memory, open_store

__all__ = [
    "STORE_VARIABLE",
    "Begun",
    "CoCommitting",
    "Durability",
    "EventPage",
    "Finished",
    "Fresh",
    "InDoubt",
    "InFlight",
    "Kept",
    "Looked",
    "Mismatch",
    "Retention",
    "Saved",
    "SettingsFile",
    "SqliteStore",
    "Store",
    "StoredReceipt",
    "Token",
    "default_settings_path",
    "default_store",
    "default_store_url",
    "memory",
    "open_store",
]
