// SPDX-License-Identifier: Apache-2.0

// What RunLoopKit needs of C: hooks that are set when the program is loaded, and the frames of the stack.
#pragma once

#include <stdint.h>

enum { RLK_STACK_LIMIT = 128 };

// The return addresses of the calling thread's frames, the innermost first: at most the limit; returns their number.
// The first is where the caller goes on when it returns.
int rlk_stack(void *addresses[RLK_STACK_LIMIT]);

// What the dynamic linker knows of an address.
typedef struct rlk_place {
  // The file that it lies in, to be shown, and to be opened.
  const char *name;
  const char *path;
  // Where the file lies.
  uintptr_t base;
  // The symbol before the address, if the linker knows one, and its address.
  const char *symbol;
  uintptr_t symbol_address;
} rlk_place;

// Finds it; 0 if the address lies in no file.
int rlk_place_find(uintptr_t address, rlk_place *place);

// Core Foundation's run loops, as far as they have been made: none is made by asking. NULL if there is none.
const void *rlk_main_loop_if_made(void);
const void *rlk_current_loop_if_made(void);

// Whether a loop of Core Foundation's is the main thread's, without a lock; 0 if that cannot be known.
int rlk_is_main_loop(const void *loop);

// The number of the counter that wakes Core Foundation's main loop, as `CFRunLoopWakeUp` does, for callers that may
// take no lock; -1 if the loop is not the main one, or if the number cannot be known.
int rlk_wake_number(const void *loop);

// Whether a mode of Core Foundation's loop has a source, a timer or a block, whatever the main dispatch queue has;
// called on the loop's thread.
int rlk_has_items(const void *loop, const void *mode);

// The epoll set of this process that watches a descriptor which no other set watches; -1 if it cannot be found, or is
// not among so many descriptors.
enum { RLK_DESCRIPTOR_LIMIT = 4096 };
int rlk_epoll_set_with(int descriptor);

// Notes for Core Foundation that the calling thread, the main one, drains the main dispatch queue, so that runs nested
// in the queue's work leave it alone; 0 if it is drained already. Ends with the second call.
int rlk_begin_draining(void);
void rlk_end_draining(void);

// Ends the run of a mode of Core Foundation's loop that goes on, or the next, whatever it is told otherwise.
void rlk_stop_mode(const void *loop, const void *mode);

// Where a loop of Core Foundation's keeps what it notes for a run, from the loop's address; -1 if it cannot be found.
// Outside a run that does not move.
int rlk_find_run_data(const void *loop);

// Lets `CFRunLoopWakeUp` wake the loop outside a run too, where it is dropped otherwise; called on the loop's thread,
// outside a run, with what `rlk_find_run_data` has found.
void rlk_heed_wakeups(const void *loop, int offset);

// Whether a source of Core Foundation's is signalled.
int rlk_is_signalled(const void *source);
