"""A server for provoking: it answers with what few servers send and every gateway has to pass on unchanged.

It is written without the SDK's types, which would drop or refuse most of it: raw JSON-RPC over standard streams and
over HTTP, in both eras. Gateway tests hold what comes from it directly against what comes from it through a gateway.

What is odd:

- **Unknown fields** at every level: of results, tools, annotations, contents, errors, notices, `server/discover` and
  `initialize`. Unknown content types. Nulls where they can stand.
- **Vendor methods**: the result of `vendor/echo` is its parameters as they came, character for character.
  `vendor/announce` sends them as a notice first.
- **`_meta` both ways**: what comes with a request goes back in the result under `vendor.example/seen`.
- **JSON at its edges** (the tools `numbers`, `strings`, `deep`): integers beyond 64 bits, the spelling of floats, every
  escape, lone surrogates, U+2028 unescaped, hundreds of levels.
- **Much at once** (`burst`), **questions** (`ask`), **errors with data** (`refuse`), **a crash** (`crash`), lists that
  change (`change`), and the rest of `hotplug.testing.odd.tools`, where each tool says what it does.

It is lax: it checks neither `Host` nor `Origin`, nor that headers fit the body, nor the arguments. It keeps no secrets
and belongs on 127.0.0.1 only.

Start it with `python -m hotplug.testing.odd` on standard streams, or with `--http PORT` at a URL that it prints.
"""

from hotplug.testing.odd.web import odd_app

__all__ = ["odd_app"]
