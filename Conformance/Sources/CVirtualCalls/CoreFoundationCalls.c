// SPDX-License-Identifier: Apache-2.0

#include "include/CoreFoundationCalls.h"

extern const void *CFRunLoopCopyCurrentMode(const void *loop);
extern void _CFRunLoopStopMode(const void *loop, const void *mode);
extern unsigned char CFRunLoopSourceIsSignalled(const void *source);

const void *cvc_copy_current_mode(const void *loop) { return CFRunLoopCopyCurrentMode(loop); }

void cvc_stop_mode(const void *loop, const void *mode) { _CFRunLoopStopMode(loop, mode); }

bool cvc_is_signalled(const void *source) { return CFRunLoopSourceIsSignalled(source) != 0; }
