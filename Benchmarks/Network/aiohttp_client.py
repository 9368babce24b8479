# SPDX-License-Identifier: Apache-2.0
"""aiohttp, used as in its documentation: PORT PATH COUNT CONNECTIONS."""

import asyncio
import json
import resource
import sys
import time

import aiohttp


async def main():
    port, path, count, connections = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    url = f"http://127.0.0.1:{port}{path}"
    left = count
    begin = time.monotonic()
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections), timeout=timeout
    ) as session:

        async def chain():
            nonlocal left
            while left > 0:
                left -= 1
                async with session.get(url) as response:
                    if count == 1:
                        async for _ in response.content.iter_chunked(65536):
                            pass
                    else:
                        await response.read()

        await asyncio.gather(*(chain() for _ in range(connections)))
    seconds = time.monotonic() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "requests": count,
                "seconds": seconds,
                "processor": usage.ru_utime + usage.ru_stime,
                "peak": usage.ru_maxrss,
            }
        )
    )


asyncio.run(main())
