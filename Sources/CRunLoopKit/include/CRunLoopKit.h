// What RunLoopKit needs of C: hooks that are set when the program is loaded, and the frames of the stack.
#pragma once

#include <stdint.h>

enum { RLK_STACK_LIMIT = 128 };

// The return addresses of the calling thread's frames, the innermost first: at most the limit; gives their number. The
// first is where the caller goes on when it returns.
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
