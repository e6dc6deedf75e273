"""The shop as a child process: `shop_server.py STORE [http PORT]`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE)]

from shop import MyShop  # noqa: E402

from hotplug.serve import run  # noqa: E402
from hotplug.store import open_store  # noqa: E402

options = {"transport": "http", "port": int(sys.argv[3])} if sys.argv[2:] else {}
run(MyShop(), store=open_store(f"sqlite:///{sys.argv[1]}"), identity="shop", **options)
