"""Does everything right. The second argument is its era: legacy, modern or both."""

import sys

from wire import Server

Server(eras=sys.argv[2] if len(sys.argv) > 2 else "both").run()
