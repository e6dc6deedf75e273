"""Does everything right after the seconds that it needs to start; may pass over what it doesn't know in silence.

The seconds, or a file that holds them.
"""

import sys
import time
from pathlib import Path
from typing import Any

from wire import Server, Silence


def silent(_: dict[str, Any]) -> Any:
    raise Silence


record, seconds, eras = sys.argv[1:4]
server = Server(eras=eras)
if eras == "legacy":
    server.others["server/discover"] = silent
if eras == "modern":
    server.others["initialize"] = silent
time.sleep(float(Path(seconds).read_text() if Path(seconds).is_file() else seconds))
server.run()
