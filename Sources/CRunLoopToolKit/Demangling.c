// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopToolKit.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Exported by Swift's standard library, but not declared in any header. The first returns the short names used in
// backtraces.
extern char *_swift_backtrace_demangle(const char *name, size_t length, char *buffer, size_t *size)
    __attribute__((weak));
extern char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags)
    __attribute__((weak));

// Nested substitutions can make a demangled name exponentially long, and the name comes from an untrusted file.
enum { most_text = 1 << 20, most_bound = 1 << 24, most_name = 1 << 14, most_type = 64 };
// The limits of a child process that demangles a name, and its user if the tool runs as root. The child's processor
// time is limited; the time to wait for it is longer, because a busy machine may run the child late.
enum { most_memory = 256 << 20, most_seconds = 2, most_wait = 20000, nobody = 65534 };

static int is_digit(char character) { return character >= '0' && character <= '9'; }
static int is_lower(char character) { return character >= 'a' && character <= 'z'; }
static int is_upper(char character) { return character >= 'A' && character <= 'Z'; }

// Parses a repeat count and advances past it; returns one if there is none.
static size_t repeats(const char **place) {
  size_t number = !is_digit(**place);
  for (; is_digit(**place); ++*place)
    if (number < most_bound) number = number * 10 + (size_t)(**place - '0');
  return number;
}

// Returns how often a text must be doubled to hold `count` copies of itself in addition.
static size_t doublings(size_t count) {
  size_t number = 0;
  for (; count > 0; count >>= 1) number++;
  return number;
}

// Whether the demangled text of a name has a bounded length, regardless of its meaning.
//
// Each reference to an earlier part or word can double the text, and one with a count repeats the part that often.
// Characters inside identifiers are counted as well, because only the full grammar can determine where identifiers end.
static int is_bounded(const char *name) {
  size_t length = strnlen(name, most_name + 1), uses = 0, types = 0;
  if (length > most_name) return 0;
  for (const char *start = name; *start; start++) {
    const char *place = start + 1;
    switch (*start) {
    case 'S':
      if (is_digit(*place)) types += repeats(&place);
      break;
    case '0':
      for (; is_lower(*place); place++) uses++;
      uses += is_upper(*place);
      break;
    case 'A':
      // Lowercase letters, each with an optional count, ending with an uppercase letter or an underscore.
      for (int goes_on = 1; goes_on; place++) {
        size_t number = repeats(&place);
        goes_on = is_lower(*place);
        if (goes_on || is_upper(*place)) uses += doublings(number);
        if (*place == '_') uses++;
        if (!*place) break;
      }
      break;
    default: break;
    }
  }
  return uses < 20 && length + types < most_bound && (length + types) * most_type <= (size_t)most_bound >> uses;
}

// Omits the module's name if requested and supported.
static char *demangle(const char *name, int is_qualified) {
  size_t length = strlen(name);
  char *text = NULL;
  if (!is_qualified && _swift_backtrace_demangle) text = _swift_backtrace_demangle(name, length, NULL, NULL);
  return text || !swift_demangle ? text : swift_demangle(name, length, NULL, NULL, 0);
}

typedef struct {
  const char *name;
  int is_qualified;
} question;

static void answer(void *context) {
  question *asked = context;
  char *text = demangle(asked->name, asked->is_qualified);
  size_t length = text ? strlen(text) : 0;
  for (size_t start = 0; start < length;) {
    ssize_t count = write(1, text + start, length - start);
    if (count <= 0) _exit(1);
    start += (size_t)count;
  }
  _exit(text == NULL);
}

// Returns the size of this process's memory, or zero if it is unknown.
static uint64_t own_memory(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%lu", &pages) != 1) pages = 0;
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// Demangles in a child with limited time and memory and the rights of a user, and sets its exit status.
static char *demangle_as(uint32_t user, uint32_t group, const char *name, int is_qualified, int *status) {
  question asked = {name, is_qualified};
  uint64_t memory = own_memory();
  crlt_limits limits = {.memory = memory ? memory + most_memory : UINT64_MAX, .seconds = most_seconds};
  int output;
  int child = crlt_do_restricted(answer, &asked, &limits, user, group, &output);
  *status = -1;
  if (child < 0) return NULL;
  char *text = malloc(most_text);
  size_t length = 0;
  int is_whole = 0;
  for (struct pollfd entry = {output, POLLIN, 0}; text && length < most_text - 1;) {
    int count = poll(&entry, 1, most_wait);
    if (count < 0 && errno == EINTR) continue;
    ssize_t read_count = count > 0 ? read(output, text + length, most_text - 1 - length) : -1;
    if (read_count < 0 && errno == EINTR) continue;
    is_whole = read_count == 0;
    if (read_count <= 0) break;
    length += (size_t)read_count;
  }
  close(output);
  *status = crlt_end_restricted(child, is_whole ? most_wait : 0);
  if (*status == 0 && is_whole && length > 0) {
    text[length] = 0;
    return text;
  }
  free(text);
  return NULL;
}

static char *demangle_apart(const char *name, int is_qualified) {
  int status;
  if (geteuid() != 0) return demangle_as(geteuid(), getegid(), name, is_qualified, &status);
  char *text = demangle_as(nobody, nobody, name, is_qualified, &status);
  // If the namespace has no such user, runs as root without capabilities.
  int is_without_user = WIFEXITED(status) && WEXITSTATUS(status) == 126;
  return is_without_user ? demangle_as(0, 0, name, is_qualified, &status) : text;
}

char *crlt_demangle(const char *name, int is_qualified) {
  return is_bounded(name) ? demangle(name, is_qualified) : demangle_apart(name, is_qualified);
}
