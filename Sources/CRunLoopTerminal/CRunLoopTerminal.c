// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopTerminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int is_same_device(const struct stat *first, const struct stat *second) {
  return S_ISCHR(first->st_mode) && S_ISCHR(second->st_mode) && first->st_rdev == second->st_rdev;
}

int crl_terminal_is_one(int descriptor) { return isatty(descriptor); }

int crl_terminal_is_same(int first, int second) {
  struct stat one, other;
  return fstat(first, &one) == 0 && fstat(second, &other) == 0 && is_same_device(&one, &other);
}

int crl_terminal_open_again(int descriptor) {
  const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  char name[256];
  struct stat wanted, found;
  if (fstat(descriptor, &wanted) < 0) return -errno;
  if (ttyname_r(descriptor, name, sizeof name) == 0) {
    int opened = open(name, flags);
    if (opened >= 0) {
      if (fstat(opened, &found) == 0 && is_same_device(&wanted, &found)) return opened;
      close(opened);
    }
  }
  // The terminal has no name here, as in a container.
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  int opened = open(name, flags);
  return opened < 0 ? -errno : opened;
}

int crl_terminal_size(int descriptor, int *columns, int *rows) {
  struct winsize size = {0};
  if (ioctl(descriptor, TIOCGWINSZ, &size) < 0) return -errno;
  *columns = size.ws_col;
  *rows = size.ws_row;
  return 0;
}

int crl_terminal_set_size(int descriptor, int columns, int rows) {
  struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
  return ioctl(descriptor, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int crl_terminal_read(int descriptor, void *bytes, size_t count) {
  for (;;) {
    ssize_t answer = read(descriptor, bytes, count);
    if (answer >= 0) return (int)answer;
    if (errno != EINTR) return -errno;
  }
}

int crl_terminal_write(int descriptor, const void *bytes, size_t count) {
  for (;;) {
    ssize_t answer = write(descriptor, bytes, count > 1 << 30 ? 1 << 30 : count);
    if (answer >= 0) return (int)answer;
    if (errno != EINTR) return -errno;
  }
}

static int64_t now_in_milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Async-signal-safe.
int crl_terminal_write_all(int descriptor, const void *bytes, size_t count, int milliseconds) {
  const uint8_t *next = bytes;
  const int64_t end = now_in_milliseconds() + milliseconds;
  while (count > 0) {
    int written = crl_terminal_write(descriptor, next, count);
    if (written > 0) {
      next += written;
      count -= (size_t)written;
      continue;
    }
    if (written < 0 && written != -EAGAIN) return written;
    int64_t left = end - now_in_milliseconds();
    if (left <= 0) return -EAGAIN;
    struct pollfd room = {.fd = descriptor, .events = POLLOUT};
    if (poll(&room, 1, (int)left) < 0 && errno != EINTR) return -errno;
    if (room.revents & (POLLERR | POLLHUP | POLLNVAL)) return -EIO;
  }
  return 0;
}

// Async-signal-safe.
void crl_terminal_drop_answers(int descriptor, int count) {
  const int64_t end = now_in_milliseconds() + 500;
  // How many of the first three bytes of `ESC [ ? 6 2 ; 2 2 c` have arrived. The numbers and the final byte follow.
  int state = 0;
  while (count > 0) {
    int64_t left = end - now_in_milliseconds();
    struct pollfd input = {.fd = descriptor, .events = POLLIN};
    if (left <= 0) break;
    if (poll(&input, 1, (int)left) < 0 && errno != EINTR) break;
    uint8_t bytes[256];
    int read = input.revents ? crl_terminal_read(descriptor, bytes, sizeof bytes) : -EAGAIN;
    if (read == 0 || (read < 0 && read != -EAGAIN)) break;
    for (int index = 0; index < read; index++) {
      uint8_t byte = bytes[index];
      if (byte == 0x1B) {
        state = 1;
      } else if (state == 1) {
        state = byte == '[' ? 2 : 0;
      } else if (state == 2) {
        state = byte == '?' ? 3 : 0;
      } else if (state == 3 && byte == 'c') {
        count--;
        state = 0;
      } else if (state == 3 && !((byte >= '0' && byte <= '9') || byte == ';')) {
        state = 0;
      }
    }
  }
  tcflush(descriptor, TCIFLUSH);
}

void crl_terminal_close(int descriptor) { close(descriptor); }

void crl_terminal_stop(int terminal) {
  struct sigaction usual = {.sa_handler = SIG_DFL}, before;
  sigset_t stop, mask;
  sigemptyset(&usual.sa_mask);
  sigaction(SIGTSTP, &usual, &before);
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  // The process stops here instead of at the thread's next action.
  pthread_sigmask(SIG_UNBLOCK, &stop, &mask);
  if (terminal >= 0 && tcgetpgrp(terminal) == getpgrp()) {
    kill(0, SIGTSTP);
  } else {
    raise(SIGTSTP);
  }
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGTSTP, &before, NULL);
}

int crl_terminal_make(char *path, size_t capacity) {
  int window = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (window < 0) return -errno;
  if (grantpt(window) < 0 || unlockpt(window) < 0 || ptsname_r(window, path, capacity) != 0) {
    int error = errno;
    close(window);
    return -error;
  }
  return window;
}
