# SPDX-License-Identifier: Apache-2.0
"""Uses asyncio's loop as the host of Swift's main loop: a main actor task replies to a coroutine, on one thread.

    python3 Examples/Python/guest.py PATH-OF-libGuestLibrary.so
"""
import asyncio
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
services = 0


def serve():
    global services
    services += 1
    library.guest_service()


async def ask():
    """What a task of Swift's says."""
    answer = asyncio.get_running_loop().create_future()
    call = ANSWER(lambda text, _: answer.set_result(text.decode()))
    library.guest_load(call, None)
    return await answer


async def main():
    loop = asyncio.get_running_loop()
    descriptor = library.guest_begin()
    if descriptor < 0:
        sys.exit("the main loop cannot be a guest")
    loop.add_reader(descriptor, serve)
    print(await ask(), flush=True)
    print(*await asyncio.gather(*(ask() for _ in range(3))), sep=", ", flush=True)
    before = services
    await asyncio.sleep(2)
    print(f"idle: {services - before} calls in two seconds", flush=True)
    loop.remove_reader(descriptor)
    library.guest_end()


asyncio.run(main())
