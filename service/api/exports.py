"""A file of accounts on its way out: sent while it is made, with memory held for it until it has left.

The file is cut off once its caller's credential has ended, which the client notices.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Final

from fastapi import Depends, Request

from service.api.auth import Caller
from service.api.middleware.request_limits import ResponseAborted
from service.api.uploads import held
from service.reads.account_files import AccountFile
from service.writer.admission.transfers import Transfers

CHUNK_BYTES: Final = 2**16
"""How many bytes are handed to the connection at a time. It takes no more until its client has read them."""


async def room(request: Request, caller: Caller) -> AsyncIterator[None]:
    """Hold memory for one export until its response has left or its client has gone.

    Raises Busy where there is none.
    """
    transfers: Transfers = request.app.state.replica.transfers
    async with held(transfers, caller.id, transfers.export_bytes, patience_s=0):
        yield


Room = Annotated[None, Depends(room)]


async def sent(
    first: bytes | None, file: AccountFile, *, may_go_on: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """The file from its first piece on, in chunks. Each further piece is made once the last one has been taken.

    Raises ResponseAborted if `may_go_on` is False before a further piece.
    """
    piece = first
    while piece is not None:
        for begin in range(0, len(piece), CHUNK_BYTES):
            yield piece[begin : begin + CHUNK_BYTES]
        if not await may_go_on():
            raise ResponseAborted
        piece = await asyncio.wrap_future(file.next_piece())
