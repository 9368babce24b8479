// SPDX-License-Identifier: Apache-2.0

#include "CRace.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

int64_t race_heap(void) {
  struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
}

int64_t race_resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  race_check(file && fscanf(file, "%*d %ld", &pages) == 1, "the kernel does not tell the size");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

int race_descriptors(void) {
  DIR *directory = opendir("/proc/self/fd");
  race_check(directory != NULL, "the kernel does not tell the descriptors");
  int count = -3;  // excludes ".", ".." and the directory's own descriptor
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

void race_settle(void) { usleep(100000); }
