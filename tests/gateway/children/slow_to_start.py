"""Does everything right, once a file is there."""

import sys
import time
from pathlib import Path

from wire import Server

server = Server(eras=sys.argv[3])
until = Path(sys.argv[2])
while not until.exists():
    time.sleep(0.01)
server.run()
