// SPDX-License-Identifier: Apache-2.0

// Draws the frames of Benchmarks/frames with ncurses on a pseudo-terminal, and counts the bytes of each.
#define _GNU_SOURCE
#define _XOPEN_SOURCE_EXTENDED 1

#include <curses.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int window;

// Reads the available bytes, and returns their number.
static long drain(void) {
  char buffer[65536];
  long total = 0;
  struct pollfd ready = {.fd = window, .events = POLLIN};
  while (poll(&ready, 1, 0) > 0) {
    ssize_t count = read(window, buffer, sizeof buffer);
    if (count <= 0) break;
    total += count;
  }
  return total;
}

static int attribute(char kind) {
  if (kind == 'r') return A_REVERSE;
  if (kind == 'b') return A_BOLD;
  if (kind >= '1' && kind <= '7') return COLOR_PAIR(kind - '0');
  return A_NORMAL;
}

int main(void) {
  setlocale(LC_ALL, "");
  char *line = NULL, change[64] = "";
  size_t capacity = 0;
  int width = 80, height = 24, y = 0, is_drawing = 0, terminal;
  long frames = 0, total = 0;
  if (getline(&line, &capacity, stdin) < 0 || sscanf(line, "size %d %d", &width, &height) != 2) return 1;
  struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
  if (openpty(&window, &terminal, NULL, NULL, &size) < 0) return 1;
  FILE *file = fdopen(terminal, "r+");
  if (!file || !newterm(NULL, file, file)) return 1;
  raw();
  noecho();
  nonl();
  curs_set(0);
  idlok(stdscr, TRUE);
  leaveok(stdscr, TRUE);
  start_color();
  use_default_colors();
  for (short color = 1; color < 8; color++) init_pair(color, color, -1);
  while (getline(&line, &capacity, stdin) >= 0) {
    line[strcspn(line, "\n")] = 0;
    int is_row = strncmp(line, "row ", 4) == 0;
    if (!is_row && is_drawing && strncmp(line, "scroll", 6) != 0) {
      refresh();
      fflush(file);
      long count = drain();
      if (frames++ > 0) total += count;
      is_drawing = 0;
    }
    if (strncmp(line, "change ", 7) == 0 || strcmp(line, "end") == 0) {
      if (frames > 1) printf("%s\t%ld\t%ld\n", change, total, frames - 1);
      snprintf(change, sizeof change, "%.60s", line + 7);
      frames = total = 0;
    } else if (strcmp(line, "frame") == 0) {
      erase();
      y = 0;
      is_drawing = 1;
    } else if (is_row) {
      move(y++, 0);
      for (char *rest = line + 4, *segment; (segment = strsep(&rest, "\x1f"));) {
        if (!*segment) continue;
        attrset(attribute(*segment));
        addstr(segment + 1);
      }
      attrset(A_NORMAL);
    }
  }
  fflush(stdout);
  return 0;
}
