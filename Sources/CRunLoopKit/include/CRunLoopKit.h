// SPDX-License-Identifier: Apache-2.0

// The C functions that RunLoopKit needs: hooks that are set when the program is loaded, and the frames of the stack.
#pragma once

#include <stdint.h>

enum { RLK_STACK_LIMIT = 128 };

// Stores the return addresses of the calling thread's frames, the innermost first, and returns their number. The first
// one is the caller's.
int rlk_stack(void *addresses[RLK_STACK_LIMIT]);

// The dynamic linker's information about an address.
typedef struct rlk_place {
  // The file that contains the address: its name for display, and a path to open it.
  const char *name;
  const char *path;
  // The address at which the file is loaded.
  uintptr_t base;
  // The symbol before the address and its address, if the linker knows one.
  const char *symbol;
  uintptr_t symbol_address;
} rlk_place;

// Looks up an address, and returns 0 if no file contains it.
int rlk_place_find(uintptr_t address, rlk_place *place);

// Core Foundation's run loops, or NULL. These functions never create one.
const void *rlk_main_loop_if_made(void);
const void *rlk_current_loop_if_made(void);

// Returns 1 if a Core Foundation loop is the main thread's, and 0 if it is not or if that is unknown. Takes no lock.
int rlk_is_main_loop(const void *loop);

// Returns the eventfd that wakes Core Foundation's main loop as `CFRunLoopWakeUp` does, for callers that must not
// acquire a lock, or -1 if the loop is not the main loop or the eventfd is unknown.
int rlk_wake_number(const void *loop);

// Returns whether a mode of a Core Foundation loop has a source, a timer or a block, regardless of the main dispatch
// queue. Must be called on the loop's thread.
int rlk_has_items(const void *loop, const void *mode);

// Returns the epoll set of this process that watches a descriptor, which no other set may watch, or -1 if it cannot be
// found among the first `RLK_DESCRIPTOR_LIMIT` descriptors.
enum { RLK_DESCRIPTOR_LIMIT = 4096 };
int rlk_epoll_set_with(int descriptor);

// Records for Core Foundation that the main thread, which must be the caller, is draining the main dispatch queue, so
// that nested runs do not drain it. Returns 0 if it is already being drained. Ended by the second function.
int rlk_begin_draining(void);
void rlk_end_draining(void);

// Ends the current or next run of a mode of a Core Foundation loop, even if something else keeps it running.
void rlk_stop_mode(const void *loop, const void *mode);

// Returns the offset of the per-run data in a Core Foundation loop, or -1 if it cannot be found. It is fixed outside of
// runs.
int rlk_find_run_data(const void *loop);

// Lets `CFRunLoopWakeUp` wake the loop outside of a run, where it is otherwise ignored. Must be called on the loop's
// thread, outside of a run, with the result of `rlk_find_run_data`.
void rlk_heed_wakeups(const void *loop, int offset);

// Returns whether a Core Foundation source is signalled.
int rlk_is_signalled(const void *source);
