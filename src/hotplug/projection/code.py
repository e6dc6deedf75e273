"""The Python class beside a document: loaded from the very bytes that its digest was taken of."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from hotplug.errors import ProjectionError
from hotplug.projection.document import Source
from hotplug.projection.files import code_file
from hotplug.projection.fingerprint import code_bytes, digest_of_code

__all__ = ["load_class"]

_LOADED: Final[dict[tuple[str, str, str], Any]] = {}
"""Classes by file, name and digest: a file that changed is another class."""


def load_class(source: Source, path: Path | None) -> Any:
    """The class that a document names.

    The file is read once: what was hashed is what runs, and no compiled file beside it is ever used.

    Args:
        path: Where the document lies.

    Raises:
        ProjectionError: There is no such file or class, or it isn't what the document was frozen with.
    """
    if path is None:
        raise ProjectionError(f"{source.file} has code beside it, and nobody said where it lies")
    file = cast("Path", code_file(path, source.document))
    class_name = cast("str", source.document.code).partition(":")[2]
    try:
        text = code_bytes(file)
    except OSError as error:
        raise ProjectionError(f"{source.file}: {file.name} beside it can't be read: {error.strerror}") from None
    found = digest_of_code(text)
    if source.document.code_digest is not None and found != source.document.code_digest:
        raise ProjectionError(
            f"{file.name} isn't what {source.file} was frozen with", hint="review it, then `hotplug projection freeze`"
        )
    key = (str(file), class_name, found)
    if key not in _LOADED:
        module = ModuleType(f"hotplug_projection_{file.stem}_{found[-12:]}")
        module.__file__ = str(file)
        sys.modules[module.__name__] = module  # dataclasses and pickling look their module up
        try:
            exec(compile(text, str(file), "exec"), module.__dict__)  # noqa: S102 - the reviewed file that was just hashed
        except BaseException as error:
            del sys.modules[module.__name__]
            if isinstance(error, Exception):
                raise ProjectionError(f"{file.name} can't be loaded: {type(error).__name__}: {error}") from error
            raise
        made = getattr(module, class_name, None)
        if made is None:
            raise ProjectionError(f"{file.name} has no {class_name}")
        _LOADED[key] = made
    return _LOADED[key]
