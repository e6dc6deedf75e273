"""A browser for `BROWSER`: opens the address that it is given, and follows where it leads."""

import asyncio
import sys

from guarded import browser

asyncio.run(browser(sys.argv[1]))
