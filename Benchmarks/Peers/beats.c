// SPDX-License-Identifier: Apache-2.0

// The usual implementation of Sources/display-beats: a poll loop, a 60 Hz timer, and frames written with a blocking
// write.
#define _GNU_SOURCE

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void show(int columns, int rows) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  static char frame[1 << 16];
  char *next = frame + sprintf(frame, "\033[H");
  for (int y = 0; y < rows; y++) {
    next += sprintf(next, "\033[%dH", y + 1);
    for (int x = 0; x < columns; x++) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      *next++ = (char)('a' + state % 26);
    }
  }
  for (char *begin = frame; begin < next;) {
    ssize_t count = write(STDOUT_FILENO, begin, (size_t)(next - begin));
    if (count <= 0) _exit(1);
    begin += count;
  }
}

int main(void) {
  struct winsize size;
  struct termios before, raw;
  if (ioctl(0, TIOCGWINSZ, &size) < 0 || size.ws_col > 200 || size.ws_row > 100 || tcgetattr(0, &before) < 0) return 1;
  raw = before;
  cfmakeraw(&raw);
  tcsetattr(0, TCSANOW, &raw);
  struct itimerspec times = {.it_value.tv_nsec = 16666667, .it_interval.tv_nsec = 16666667};
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  timerfd_settime(timer, 0, &times, NULL);
  struct pollfd both[] = {{.fd = 0, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
  for (long beats = 0;;) {
    if (poll(both, 2, -1) < 0) return 1;
    if (both[0].revents) {
      char key;
      if (read(0, &key, 1) <= 0 || key == 'q') break;
      struct timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      if (key == 'b') dprintf(3, "%ld %lld\n", beats, now.tv_sec * 1000000000LL + now.tv_nsec);
    }
    if (both[1].revents) {
      uint64_t dates;
      if (read(timer, &dates, sizeof dates) != sizeof dates) return 1;
      beats++;
      show(size.ws_col, size.ws_row);
    }
  }
  tcsetattr(0, TCSANOW, &before);
  return 0;
}
