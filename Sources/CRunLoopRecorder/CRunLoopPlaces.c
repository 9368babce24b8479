// SPDX-License-Identifier: Apache-2.0

// Code locations: the callers of a function, and the file that contains an address.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <dlfcn.h>
#include <pthread.h>

// The bounds of the calling thread's stack, once they are known.
static _Thread_local uintptr_t stack_end __attribute__((tls_model("initial-exec")));
static _Thread_local uintptr_t stack_begin __attribute__((tls_model("initial-exec")));

static void find_stack(void) {
  pthread_attr_t attributes;
  void *address = NULL;
  size_t size = 0;
  stack_end = 1;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
    stack_begin = (uintptr_t)address;
    stack_end = (uintptr_t)address + size;
  }
  pthread_attr_destroy(&attributes);
}

// A frame begins with the address of the previous one, in which bit 60 marks the frame of an asynchronous function.
__attribute__((noinline, no_sanitize("address", "thread"))) void crl_frames_take(crl_frames *frames) {
  if (!stack_end) find_stack();
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  uint64_t mask = crl_code_address_mask();
  int count = 0;
  // The return address in the first frame is in the function that asked.
  for (int index = 0; index <= CRL_FRAMES; index++) {
    if (frame < stack_begin || frame + 2 * sizeof(uintptr_t) > stack_end || frame % sizeof(uintptr_t) != 0) break;
    const uintptr_t *words = (const uintptr_t *)frame;
    if (index > 0) frames->address[count++] = words[1] & mask;
    uintptr_t next = words[0] & ~((uintptr_t)1 << 60);
    if (next <= frame) break;
    frame = next;
  }
  while (count < CRL_FRAMES) frames->address[count++] = 0;
}

int crl_code_find(uint64_t address, crl_code *code) {
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)address, &info) || !info.dli_fname) return 0;
  code->path = info.dli_fname;
  code->base = (uint64_t)(uintptr_t)info.dli_fbase;
  code->symbol = info.dli_sname;
  return 1;
}

extern const char *swift_getTypeContextDescriptor(const void *type) __attribute__((weak));

// A type's context descriptor consists of 32-bit words: the flags, the parent, the name and the accessor function. The
// last three are relative to their own addresses.
uint64_t crl_type_code(const void *type) {
  const char *descriptor = swift_getTypeContextDescriptor ? swift_getTypeContextDescriptor(type) : NULL;
  int32_t distance;
  if (!descriptor) return 0;
  memcpy(&distance, descriptor + 12, sizeof distance);
  return distance ? (uint64_t)(uintptr_t)(descriptor + 12) + (uint64_t)(int64_t)distance : 0;
}

__attribute__((no_sanitize("thread"))) void crl_face_copy(const crl_face *face, crl_face *copy) {
  const volatile uint64_t *words = (const volatile uint64_t *)face;
  uint64_t *target = (uint64_t *)copy;
  for (size_t index = 0; index < sizeof *face / sizeof *words; index++) target[index] = words[index];
}
