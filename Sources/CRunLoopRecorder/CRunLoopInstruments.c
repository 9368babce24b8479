// SPDX-License-Identifier: Apache-2.0

// Storage of the records: the process's file, the faces and rings used by loops, and the level.

#include "CRunLoopRecorder.h"
#include "CRunLoopSystem.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Populates pages for writing, so that a full tmpfs is reported as an error instead of a signal.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { KEPT_DEAD = 8, FACES_AT_ONCE = 32, DETAILS_AT_ONCE = 8 };
static const uint64_t KEPT_BYTES = 64ull << 20;

// The header is alone on its pages, because pages of the file are mapped over them.
static struct header_pages {
  crl_header header;
  char room[CRL_LARGEST_PAGE - sizeof(crl_header)];
} header_pages __attribute__((section("runloop_instruments"), aligned(CRL_LARGEST_PAGE), used)) = {
  .header = {.magic = CRL_MAGIC, .version = CRL_LAYOUT_VERSION, .header_size = sizeof(crl_header)}};
extern crl_header crl_instruments __attribute__((alias("header_pages")));

// Guards everything below. A running loop takes it only to apply another level.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static crl_board *board;  // where it is mapped; a forked child has its own
static int has_board;
static int shares_header;  // whether the header is a page of the file
static size_t given_page;  // the page size simulated by a test, or 0
static crl_recorder recorders[CRL_FACES];
// FIFO queues, so that the records of ended loops are kept as long as possible. Slots with a ring are separate.
static struct free_slots {
  uint16_t slots[CRL_FACES];
  uint32_t head, count;
} free_ringed, free_bare;
static uint32_t untaken;
static uint64_t generation;
static uint32_t holds[3];
// Private copies of the header and the mode names, because other processes can write to the shared ones.
static crl_header kept;
static crl_mode_name kept_modes[CRL_MODES];
static char directory[4096];
static int has_directory, has_images;

static _Thread_local char *thread_name;

static void complain(const char *what, const char *detail) {
  char line[4400];
  int length = snprintf(line, sizeof line, "RunLoopKit: %s%s\n", what, detail);
  if (length > 0 && write(2, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1) < 0) return;
}

// Returns the start time of a process in clock ticks since boot, and its state, from its `stat`. Returns 0 if there is
// no such process.
static uint64_t start_time(const char *process, char *state) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%.20s/stat", process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  // The name is in parentheses and may contain any characters.
  char *place = strrchr(text, ')');
  if (place && state) *state = place[1] ? place[2] : 0;
  for (int field = 2; place && field < 22; field++) place = strchr(place + 1, ' ');
  return place ? strtoull(place + 1, NULL, 10) : 0;
}

static uint64_t pid_namespace(void) {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// The location of the file

// These open a directory owned by the user, without following a link; the second one creates it if it is missing. They
// return -1 on failure, with `errno` set to 0 if the directory is not owned by the user or others can write to it.
static int open_own(const char *path) {
  int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat status;
  if (fstat(file, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0) return file;
  close(file);
  errno = 0;
  return -1;
}

static int open_directory(const char *path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
  return open_own(path);
}

int crl_is_on_tmpfs(const char *path) {
  char word[64];
  // Reads the file system's type from mountinfo instead of including <sys/vfs.h>.
  struct stat status;
  if (stat(path, &status) != 0) return 0;
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  if (!mounts) return 0;
  char line[4096];
  int is_one = 0;
  snprintf(word, sizeof word, " %u:%u ", (unsigned)(status.st_dev >> 8 & 0xfff),
           (unsigned)((status.st_dev & 0xff) | (status.st_dev >> 12 & 0xfff00)));
  while (fgets(line, sizeof line, mounts))
    if (strstr(line, word) && strstr(line, " - tmpfs ")) is_one = 1;
  fclose(mounts);
  return is_one;
}

// Reports why a directory cannot be used. Must be called right after open_directory, because it depends on `errno`.
static void complain_of(const char *path, const char *wrong) {
  char what[160];
  if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOSPC) return complain(wrong, path);
  snprintf(what, sizeof what, "the records have no file (%s), which would be in the directory ", strerror(errno));
  complain(what, path);
}

// Reports why the process's file cannot be created.
static void complain_of_file(const char *path) {
  char what[160];
  if (errno == ENOSPC || errno == EDQUOT)
    return complain("the file of the records cannot be made, as there is no room: ", path);
  snprintf(what, sizeof what, "the file of the records cannot be made (%s): ", strerror(errno));
  complain(what, path);
}

// Opens the first usable directory and stores its path. Returns -1 if there is none.
static int find_directory(char *path, size_t size) {
  const char *given = crl_instruments_environment("RUNLOOP_DIR");
  if (given && *given) {
    char place[3000] = "";
    if (*given != '/' && !getcwd(place, sizeof place - 1)) return -1;
    snprintf(path, size, "%s%s%s", place, *place ? "/" : "", given);
    int file = open_directory(path);
    if (file < 0) complain_of(given, "RUNLOOP_DIR cannot be used, so that the records have no file: it must be a directory "
                                     "of your own that others cannot write to, and no link: ");
    return file;
  }
  const char *runtime = crl_instruments_environment("XDG_RUNTIME_DIR");
  if (runtime && *runtime == '/' && crl_is_on_tmpfs(runtime)) {
    snprintf(path, size, "%s/runloop-instruments", runtime);
    int file = open_directory(path);
    if (file >= 0) return file;
  }
  snprintf(path, size, "/dev/shm/runloop-%u", (unsigned)geteuid());
  int file = open_directory(path);
  if (file >= 0) return file;
  int error = errno;
  if (access("/dev/shm", W_OK) != 0) return -1;
  errno = error;
  // Another user may have taken this name. Only the system can create the following directory.
  char taken[64], session[64];
  snprintf(taken, sizeof taken, "%.60s", path);
  snprintf(session, sizeof session, "/run/user/%u", (unsigned)geteuid());
  if (error == 0 || error == ELOOP || error == ENOTDIR || error == EACCES) {
    int outer = crl_is_on_tmpfs(session) ? open_own(session) : -1;
    if (outer >= 0) close(outer);
    snprintf(path, size, "%s/runloop-instruments", session);
    if (outer >= 0 && (file = open_directory(path)) >= 0) return file;
  }
  errno = error;
  complain_of(taken, "the records have no file, as this directory is not your own, or others can write to it (remove it as "
                     "root, or set XDG_RUNTIME_DIR or RUNLOOP_DIR): ");
  return -1;
}

typedef struct dead_process {
  char name[64];
  uint64_t bytes;
  struct timespec time;
} dead_process;

static int later_first(const void *left, const void *right) {
  const struct timespec *a = &((const dead_process *)left)->time, *b = &((const dead_process *)right)->time;
  if (a->tv_sec != b->tv_sec) return a->tv_sec > b->tv_sec ? -1 : 1;
  return a->tv_nsec == b->tv_nsec ? 0 : a->tv_nsec > b->tv_nsec ? -1 : 1;
}

// Checks whether `name` is the directory of a process that has ended, and describes it.
static int find_dead(int parent, const char *name, uint64_t spaces, dead_process *dead) {
  char process[24], path[80];
  const char *dot = strchr(name, '.');
  size_t length = dot ? (size_t)(dot - name) : 0;
  if (length == 0 || length >= sizeof process || strspn(name, "0123456789") != length) return 0;
  memcpy(process, name, length);
  process[length] = 0;
  if (strlen(name) >= sizeof dead->name || start_time(process, NULL) == strtoull(dot + 1, NULL, 10)) return 0;
  snprintf(path, sizeof path, "%s/rings", name);
  int file = openat(parent, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return 0;
  struct stat status;
  crl_header header;
  // The processes of another pid namespace are unknown.
  int is_ours = fstat(file, &status) == 0 && status.st_uid == geteuid() &&
                pread(file, &header, sizeof header, 0) == sizeof header && header.magic == CRL_MAGIC &&
                header.pid_namespace == spaces;
  close(file);
  if (!is_ours) return 0;
  strcpy(dead->name, name);
  dead->bytes = (uint64_t)status.st_blocks * 512;
  dead->time = status.st_mtim;
  return 1;
}

static void remove_files(int parent, const char *name) {
  char path[80];
  snprintf(path, sizeof path, "%.60s/rings", name);
  unlinkat(parent, path, 0);
  snprintf(path, sizeof path, "%.60s/agent", name);
  unlinkat(parent, path, 0);
  unlinkat(parent, name, AT_REMOVEDIR);
}

// Removes all but the newest files of processes that were killed.
static void clean(int parent) {
  int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = copy < 0 ? NULL : fdopendir(copy);
  if (!list) {
    if (copy >= 0) close(copy);
    return;
  }
  dead_process *dead = NULL;
  size_t count = 0, room = 0;
  uint64_t spaces = pid_namespace();
  for (struct dirent *entry; (entry = readdir(list));) {
    if (count == room) {
      dead_process *more = realloc(dead, (room = room ? 2 * room : 16) * sizeof *dead);
      if (!more) break;
      dead = more;
    }
    count += (size_t)find_dead(parent, entry->d_name, spaces, &dead[count]);
  }
  closedir(list);
  if (count > 0) qsort(dead, count, sizeof *dead, later_first);
  uint64_t bytes = 0;
  for (size_t index = 0; index < count; index++) {
    bytes += dead[index].bytes;
    if (index >= KEPT_DEAD || bytes > KEPT_BYTES) remove_files(parent, dead[index].name);
  }
  free(dead);
}

// Opens this process's file, or returns -1 if it cannot have one.
static int open_file(void) {
  char path[3600];
  int parent = find_directory(path, sizeof path);
  if (parent < 0) return -1;
  clean(parent);
  char name[64];
  snprintf(name, sizeof name, "%d.%llu", getpid(), (unsigned long long)kept.start);
  int file = -1, place = -1;
  if (mkdirat(parent, name, 0700) == 0 || errno == EEXIST)
    place = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (place >= 0 && fstat(place, &status) == 0 && status.st_uid == geteuid()) {
    // An empty file was created for this process by its parent; any other is from before an exec.
    if (fstatat(place, "rings", &status, AT_SYMLINK_NOFOLLOW) == 0 && (status.st_size > 0 || !S_ISREG(status.st_mode)))
      unlinkat(place, "rings", 0);
    file = crl_file_make_or_open(place, "rings", 0600);
  }
  if (file >= 0) {
    snprintf(directory, sizeof directory, "%s/%s", path, name);
    has_directory = 1;
  }
  if (place >= 0) close(place);
  close(parent);
  // For example, because the file system is read-only.
  if (file < 0) complain("the records have no file, as none can be made in this directory: ", path);
  return file;
}

// The board's file if pages cannot be populated with madvise, otherwise -1.
static int backing = -1;

static void close_backing(void) {
  if (backing >= 0) close(backing);
  backing = -1;
}

static void back(int file) {
  close_backing();
  // Detects Linux before 5.14, which does not support this advice; on newer versions, populating nothing succeeds.
  if (file >= 0 && madvise(NULL, 0, MADV_POPULATE_WRITE) != 0) backing = fcntl(file, F_DUPFD_CLOEXEC, 3);
}

// Requires the mutex.
static size_t page_size(void) { return given_page ? given_page : (size_t)sysconf(_SC_PAGESIZE); }

int crl_instruments_take_page_for(size_t size) {
  pthread_mutex_lock(&mutex);
  int is_possible = !has_board;
  if (is_possible) given_page = size;
  pthread_mutex_unlock(&mutex);
  return is_possible;
}

// The kernel accepts whole pages only; this also enforces the page size simulated by a test.
static int populate_pages(void *memory, size_t place, size_t size) {
  if (place % page_size() != 0) {
    errno = EINVAL;
    return -1;
  }
  return madvise(memory, size, MADV_POPULATE_WRITE);
}

// Rewrites a byte of each page of the file, which allocates the page.
static int write_again(off_t place, size_t size) {
  for (size_t done = 0; done < size; done += page_size()) {
    char byte = 0;
    if (pread(backing, &byte, 1, place + (off_t)done) < 0 || pwrite(backing, &byte, 1, place + (off_t)done) != 1) return 0;
  }
  return 1;
}

// Ensures that a part of the board mapped at `base` can be written to, or returns 0 with `errno` set.
static int populate_in(crl_board *base, void *memory, size_t size) {
  size_t page = page_size(), place = (size_t)((char *)memory - (char *)base);
  size += place % page;
  place -= place % page;
  memory = (char *)base + place;
  size = (size + page - 1) / page * page;
  int answer;
  while ((answer = populate_pages(memory, place, size)) < 0 && (errno == EINTR || errno == EAGAIN)) continue;
  if (answer == 0) return 1;
  // The kernel reports EFAULT if there is no room.
  if (errno == EFAULT) errno = ENOSPC;
  if (errno == ENOSPC || errno == ENOMEM || errno == EHWPOISON) return 0;
  // The call is not supported or was rejected. Without a file, memory is allocated when it is accessed.
  if (backing < 0) return 1;
  errno = posix_fallocate(backing, (off_t)place, (off_t)size);
  if (errno == 0) return 1;
  return errno != ENOSPC && errno != EDQUOT && errno != EFBIG && write_again((off_t)place, size);
}

static int populate(void *memory, size_t size) { return populate_in(board, memory, size); }

// Maps the file over the section's pages, so that a tool that has the file can change the level.
static void share_header(int file) {
  size_t page = page_size();
  if (page <= sizeof header_pages && (uintptr_t)&header_pages % page == 0) {
    int flags = MAP_SHARED | MAP_FIXED;
    shares_header = mmap(&header_pages, page, PROT_READ | PROT_WRITE, flags, file, 0) != MAP_FAILED;
  }
  board->header.is_apart = !shares_header;
  if (!shares_header)
    complain("the instruments' level can be changed by the program only, as its header cannot be a page of the file: ",
             directory);
}

// Whether the memory is shared with other processes through its file.
enum { IS_PRIVATE, IS_SHARED, IS_LEFT };
static uint32_t sharing;

static uint32_t own_level(void) {
  return holds[CRL_RECORD] ? CRL_RECORD : holds[CRL_WATCH] ? CRL_WATCH : CRL_OFF;
}

// Publishes the state of all loops again.
static void publish_faces(void) {
  // Excludes those of a process from which this one was forked.
  for (uint32_t slot = 0; slot < untaken; slot++) {
    const crl_recorder *recorder = &recorders[slot];
    crl_face *face = recorder->face;
    if (!face) continue;
    face->generation = recorder->uses;
    face->loop = recorder->loop;
    face->thread = recorder->thread;
    face->level = recorder->level;
    face->flags = recorder->flags;
    face->number = recorder->number;
    face->sleeps = recorder->sleeps;
    face->served = recorder->served;
    face->stack = recorder->stack;
    face->mode = 255;
  }
}

// Detaches from the shared file, and replaces it with private memory. Makes only system calls, because signal handlers
// call it.
static int leave_file(void) {
  uint32_t before = IS_SHARED;
  if (!__atomic_compare_exchange_n(&sharing, &before, IS_LEFT, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    // Another thread is doing this; the memory access is retried until it has finished.
    return before == IS_LEFT;
  }
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(board, sizeof *board, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return 0;
  if (shares_header && mmap(&header_pages, page_size(), PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return 0;
  // Not copied through a local variable, because a signal handler's stack may be small.
  board->header = kept;
  board->header.level = board->header.own_level = own_level();
  crl_instruments = board->header;
  memcpy(board->modes, kept_modes, sizeof kept_modes);
  publish_faces();
  return 1;
}

// Prevents truncation of the file, or its effect of killing the process.
static void guard(int file) {
  __atomic_store_n(&sharing, IS_SHARED, __ATOMIC_SEQ_CST);
  // Unnamed memory can be sealed if it was created with that option.
  if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return;
  crl_memory_guard(0, board, sizeof *board, leave_file);
  if (shares_header) crl_memory_guard(1, &header_pages, page_size(), leave_file);
}

// Maps the file, or private memory if there is no file.
static int map_file(int file) {
  int flags = board ? MAP_FIXED : 0;
  size_t size = sizeof(crl_board);
  if (file >= 0 && ftruncate(file, (off_t)size) != 0) return 0;
  int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void *memory = mmap(board, size, PROT_READ | PROT_WRITE, kind | flags, file, 0);
  if (memory == MAP_FAILED) return 0;
  // Populates the header, the first faces and the mode names.
  crl_board *made = memory;
  back(file);
  int is_good = file < 0 || (populate_in(made, &made->header, sizeof made->header) &&
                             populate_in(made, made->faces, FACES_AT_ONCE * sizeof *made->faces) &&
                             populate_in(made, made->modes, sizeof made->modes));
  if (!is_good) {
    int error = errno;
    close_backing();
    mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    board = made;
    errno = error;
    return 0;
  }
  board = made;
  board->header = crl_instruments;
  if (file >= 0) {
    share_header(file);
    guard(file);
  }
  return 1;
}

// The memory that this process's parent provided for the records, so that they outlive the process. -1 if there is
// none, or if another program has used it.
static int inherited = -1;

static void find_inherited(void) {
  const char *text = crl_instruments_environment("RUNLOOP_RECORD_MEMORY");
  char *end;
  long number = text && *text ? strtol(text, &end, 10) : -1;
  struct stat status;
  if (number < 3 || number > 1 << 20 || *end || fstat((int)number, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid() || status.st_nlink != 0 || status.st_size != 0)
    return;
  inherited = (int)number;
  fcntl(inherited, F_SETFD, FD_CLOEXEC);
}

static void fill_header(void) {
  crl_header *header = &crl_instruments;
  const uint64_t *random = (const uint64_t *)getauxval(AT_RANDOM);
  header->process = getpid();
  header->start = start_time("self", NULL);
  header->pid_namespace = pid_namespace();
  header->image_random = random ? *random : 0;
  header->page_size = (uint32_t)page_size();
  header->face_count = CRL_FACES;
  header->ring_count = CRL_RINGS;
  header->record_count = CRL_RECORDS;
  header->post_count = CRL_POSTS;
  header->face_offset = offsetof(crl_board, faces);
  header->details_offset = offsetof(crl_board, details);
  header->mode_offset = offsetof(crl_board, modes);
  header->image_offset = offsetof(crl_board, images);
  header->ring_offset = offsetof(crl_board, rings);
  header->ring_size = sizeof(crl_ring);
  header->used_modes = header->used_images = 0;
  header->lost_loops = 0;
  header->used_faces = 0;
  memset(header->holders, 0, sizeof header->holders);
  kept = *header;
  memset(kept_modes, 0, sizeof kept_modes);
}

static void remove_own_files(void);

static void make_board(void) {
  has_board = 1;
  fill_header();
  int is_private = crl_is_privileged();
  if (is_private && own_level() > CRL_OFF)
    complain("the instruments show nothing, as the process may do more than its caller or is not dumpable ",
             "(see prctl(2), PR_SET_DUMPABLE)");
  int file = is_private ? -1 : open_file();
  int is_made = is_private ? map_file(-1) : file >= 0 && map_file(file);
  int error = errno;
  if (file >= 0) close(file);
  if (!is_made) {
    if (file >= 0) {
      errno = error;
      complain_of_file(directory);
      remove_own_files();
    }
    if (inherited >= 0) is_made = map_file(inherited);
    int memory = is_made ? -1 : memfd_create("runloop-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!is_made) is_made = memory >= 0 && map_file(memory);
    if (memory >= 0) close(memory);
  }
  if (inherited >= 0) close(inherited);
  inherited = -1;
  if (!is_made && !map_file(-1)) {
    complain("there is no memory for the records of run loops: ", strerror(errno));
    abort();
  }
  free_ringed.head = free_ringed.count = free_bare.head = free_bare.count = untaken = 0;
}

// The clock and the loaded images, before the first record

// Reads two clocks at the same time.
static crl_times pair_of_times(void) {
  crl_times pair = {0};
  // The thread may be preempted between two readings, so the closest pair of several is used.
  uint64_t least = UINT64_MAX;
  for (int turn = 0; turn < 16; turn++) {
    uint64_t before = crl_ticks();
    int64_t monotonic = crl_monotonic_nanoseconds();
    uint64_t after = crl_ticks();
    if (after - before >= least) continue;
    least = after - before;
    pair.ticks = before + least / 2;
    pair.monotonic = monotonic;
  }
  return pair;
}

// Requires the mutex. Done only once, because measurements of different clocks cannot be compared.
static void choose_clock(void) {
  static int is_chosen;
  if (is_chosen) return;
#if defined(__x86_64__)
  char name[16] = "";
  int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  // Relaxed: each loop takes the mutex before its first measurement, and readers acquire only values published later.
  if (file >= 0) {
    if (read(file, name, sizeof name - 1) > 0)
      __atomic_store_n(&crl_clock_is_processors, !strncmp(name, "tsc", 3), __ATOMIC_RELAXED);
    close(file);
  }
#elif defined(__aarch64__)
  // By the architecture, the counter is the same and has the same rate on all processors; the kernel works around
  // errata. Relaxed: each loop takes the mutex before its first measurement, and readers acquire only values published
  // later.
  __atomic_store_n(&crl_clock_is_processors, crl_processor_frequency() > 0, __ATOMIC_RELAXED);
#endif
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  kept.clock = crl_clock_is_processors ? CRL_CLOCK_PROCESSOR : CRL_CLOCK_MONOTONIC;
  kept.frequency = crl_clock_is_processors ? crl_processor_frequency() : 0;
  kept.calibration[0] = pair_of_times();
  kept.calibration[0].wall = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
  // If the header is separate from its file, the file is updated too.
  board->header.clock = crl_instruments.clock = kept.clock;
  board->header.frequency = crl_instruments.frequency = kept.frequency;
  board->header.calibration[0] = crl_instruments.calibration[0] = kept.calibration[0];
  // Set last, so that a child forked before this makes its own choice.
  is_chosen = 1;
}

static void note_build_id(crl_image *image, const struct dl_phdr_info *info, const ElfW(Phdr) *segment) {
  const char *place = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = place + segment->p_memsz;
  while (place + sizeof(ElfW(Nhdr)) <= end) {
    const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)place;
    const char *name = place + sizeof *note, *data = name + ((note->n_namesz + 3) & ~3u);
    if (data + note->n_descsz > end) return;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
      uint32_t length = note->n_descsz < sizeof image->build_id ? note->n_descsz : sizeof image->build_id;
      image->build_id_length = length;
      memcpy(image->build_id, data, length);
      return;
    }
    place = data + ((note->n_descsz + 3) & ~3u);
  }
}

static int note_image(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  uint32_t index = kept.used_images;
  if (index >= CRL_IMAGES) return 1;
  crl_image image = {.base = info->dlpi_addr};
  if (info->dlpi_name && *info->dlpi_name) {
    snprintf(image.path, sizeof image.path, "%s", info->dlpi_name);
  } else {
    ssize_t length = readlink("/proc/self/exe", image.path, sizeof image.path - 1);
    image.path[length > 0 ? length : 0] = 0;
  }
  for (int part = 0; part < info->dlpi_phnum; part++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[part];
    if (segment->p_type == PT_LOAD && info->dlpi_addr + segment->p_vaddr + segment->p_memsz > image.end)
      image.end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    if (segment->p_type == PT_NOTE && !image.build_id_length) note_build_id(&image, info, segment);
  }
  board->images[index] = image;
  board->header.used_images = crl_instruments.used_images = kept.used_images = index + 1;
  return 0;
}

static int prepare_to_record(void) {
  if (has_images) return 1;
  if (!populate(board->images, sizeof board->images) && has_directory) return 0;
  choose_clock();
  crl_tasks_watch();
  dl_iterate_phdr(note_image, NULL);
  has_images = 1;
  return 1;
}

// Totals of loops

// Used by loops for which no memory could be allocated.
static crl_sums nobodys_sums;

// Measures the length of a tick, before the first loop is watched.
static void measure_ticks(void) {
  if (crl_tick_scale) return;
  choose_clock();
  double length = kept.frequency > 0 ? 1e9 / (double)kept.frequency : 1;
  if (crl_clock_is_processors && kept.frequency == 0) {
    crl_times first = kept.calibration[0], last;
    // A tenth of a millisecond, spent once per process, determines three digits, which suffices for durations.
    do last = pair_of_times();
    while (last.monotonic - first.monotonic < 100000);
    if (last.ticks > first.ticks)
      length = (double)(last.monotonic - first.monotonic) / (double)(last.ticks - first.ticks);
  }
  crl_tick_scale = (uint64_t)(length * 4294967296.0);
}

static void prepare_to_sum(crl_recorder *recorder) {
  if (recorder->sums) return;
  pthread_mutex_lock(&mutex);
  measure_ticks();
  pthread_mutex_unlock(&mutex);
  crl_sums *sums = calloc(1, sizeof *sums);
  __atomic_store_n(&recorder->sums, sums ? sums : &nobodys_sums, __ATOMIC_RELEASE);
}

// Clears the totals of a face's earlier loop, but keeps their memory.
static crl_sums *emptied(crl_sums *sums) {
  if (sums) memset(sums, 0, sizeof *sums);
  return sums;
}

// Starts or stops measuring the loop's busy time, depending on the level.
static void count_time(crl_recorder *recorder, uint32_t level) {
  int sleeps = crl_recorder_flags(recorder) & CRL_FACE_SLEEPS;
  crl_busy_note(recorder, level >= CRL_WATCH && crl_recorder_depth(recorder) > 0 && !sleeps, crl_ticks());
}


static crl_recorder *private_recorder(void) {
  // There are more loops than faces, so this one is not visible to tools.
  struct hidden {
    crl_recorder recorder;
    crl_face face;
    crl_details details;
  } *hidden = calloc(1, sizeof *hidden);
  if (!hidden) abort();
  hidden->recorder.face = &hidden->face;
  hidden->recorder.details = &hidden->details;
  hidden->recorder.slot = CRL_FACES;
  return &hidden->recorder;
}

static uint32_t take_slot(struct free_slots *slots) {
  uint32_t slot = slots->slots[slots->head];
  slots->head = (slots->head + 1) % CRL_FACES;
  slots->count--;
  return slot;
}

static void give_slot_back(struct free_slots *slots, uint32_t slot) {
  slots->slots[(slots->head + slots->count++) % CRL_FACES] = (uint16_t)slot;
}

// Notifies a service that responds to tools, with no locks held.
static void announce_board(void) {
  crl_hook hook = crl_hook_get(CRL_HOOK_RECORDS_ARE_MADE);
  if (hook) hook(NULL);
}

crl_recorder *crl_recorder_take(const void *loop) {
  pthread_mutex_lock(&mutex);
  int is_first = !has_board;
  if (is_first) make_board();
  uint32_t slot = CRL_FACES;
  if (untaken >= CRL_RINGS && free_ringed.count > 0) {
    // Reuses a slot with a ring, which discards the records of a loop that has ended.
    slot = take_slot(&free_ringed);
  } else if (untaken < CRL_FACES) {
    slot = untaken++;
    // Several faces and details are populated at once: a page of each if pages are small.
    if ((slot % FACES_AT_ONCE == 0 && !populate(&board->faces[slot], FACES_AT_ONCE * sizeof(crl_face)) &&
         has_directory) ||
        (slot % DETAILS_AT_ONCE == 0 && !populate(&board->details[slot], DETAILS_AT_ONCE * sizeof(crl_details)) &&
         has_directory)) {
      untaken--;
      slot = CRL_FACES;
    }
    board->header.used_faces = crl_instruments.used_faces = kept.used_faces = untaken;
  } else if (free_bare.count > 0) {
    slot = take_slot(&free_bare);
  }
  crl_recorder *recorder;
  if (slot < CRL_FACES) {
    recorder = &recorders[slot];
    crl_face *face = &board->faces[slot];
    uint32_t earlier = recorder->uses;
    crl_sums *sums = emptied(recorder->sums);
    memset(recorder, 0, sizeof *recorder);
    recorder->sums = sums;
    memset(face, 0, sizeof *face);
    memset(&board->details[slot], 0, sizeof board->details[slot]);
    face->generation = recorder->uses = earlier + 1;
    recorder->face = face;
    recorder->details = &board->details[slot];
    recorder->slot = slot;
    recorder->cause = (uint64_t)slot << CRL_CAUSE_SLOT_SHIFT;
  } else {
    board->header.lost_loops = crl_instruments.lost_loops = ++kept.lost_loops;
    recorder = private_recorder();
  }
  recorder->generation = (uint32_t)generation;
  recorder->face->mode = 255;
  crl_recorder_set_loop(recorder, (uint64_t)(uintptr_t)loop);
  pthread_mutex_unlock(&mutex);
  crl_holders_check();
  if (is_first) announce_board();
  return recorder;
}

void crl_recorder_give_back(crl_recorder *recorder) {
  pthread_mutex_lock(&mutex);
  if (recorder->slot >= CRL_FACES) {
    if (recorder->generation == (uint32_t)generation)
      board->header.lost_loops = crl_instruments.lost_loops = --kept.lost_loops;
    pthread_mutex_unlock(&mutex);
    if (recorder->sums != &nobodys_sums) free(recorder->sums);
    return free(recorder);
  }
  // In a forked child, all recorders of the parent have already been returned.
  if (recorder->generation == (uint32_t)generation) {
    crl_recorder_set_loop(recorder, 0);
    crl_recorder_set_flags(recorder, crl_recorder_flags(recorder) | CRL_FACE_ENDED);
    give_slot_back(recorder->slot < CRL_RINGS ? &free_ringed : &free_bare, recorder->slot);
  }
  pthread_mutex_unlock(&mutex);
}

static void copy_name(crl_recorder *recorder) {
  pthread_mutex_lock(&mutex);
  snprintf(recorder->details->name, sizeof recorder->details->name, "%s", thread_name ? thread_name : "");
  pthread_mutex_unlock(&mutex);
}

void crl_recorder_set_thread(crl_recorder *recorder, int thread, int flags) {
  crl_face *face = recorder->face;
  if (thread == 0) {
    count_time(recorder, CRL_OFF);
    crl_recorder_set_flags(recorder, crl_recorder_flags(recorder) | CRL_FACE_ENDED);
    // Relaxed, like all accesses to a face: its fields are independent of each other.
    __atomic_store_n(&recorder->level, CRL_OFF, __ATOMIC_RELAXED);
    __atomic_store_n(&face->level, CRL_OFF, __ATOMIC_RELAXED);
    if (crl_thread_recorder_get() == recorder) crl_thread_recorder_set(NULL);
    return;
  }
  crl_recorder_set_flags(recorder, flags);
  // Relaxed: the thread uses its own recorder, and the name is guarded by the mutex.
  __atomic_store_n(&recorder->thread, thread, __ATOMIC_RELAXED);
  __atomic_store_n(&face->thread, thread, __ATOMIC_RELAXED);
  crl_thread_recorder_set(recorder);
  copy_name(recorder);
}

const crl_board *crl_board_get(void) {
  pthread_mutex_lock(&mutex);
  const crl_board *made = has_board ? board : NULL;
  pthread_mutex_unlock(&mutex);
  return made;
}

int crl_slot_has_ring(uint32_t slot) {
  return slot < CRL_RINGS && __atomic_load_n(&recorders[slot].ring, __ATOMIC_ACQUIRE) != NULL;
}

void crl_recorder_name(const crl_recorder *recorder, char name[256]) {
  pthread_mutex_lock(&mutex);
  memcpy(name, recorder->details->name, 256);
  pthread_mutex_unlock(&mutex);
  name[255] = 0;
}

void crl_thread_name_set(int thread, const char *name) {
  if (thread == crl_thread_id()) {
    free(thread_name);
    thread_name = name ? strdup(name) : NULL;
    crl_recorder *recorder = crl_thread_recorder_get();
    if (recorder) copy_name(recorder);
    return;
  }
  pthread_mutex_lock(&mutex);
  for (uint32_t slot = 0; slot < untaken; slot++) {
    const crl_recorder *recorder = &recorders[slot];
    // Relaxed: a thread whose id is being set copies its name itself, under the mutex.
    if (recorder->face && __atomic_load_n(&recorder->loop, __ATOMIC_RELAXED) &&
        __atomic_load_n(&recorder->thread, __ATOMIC_RELAXED) == thread &&
        !(crl_recorder_flags(recorder) & CRL_FACE_ENDED))
      snprintf(recorders[slot].details->name, sizeof recorders[slot].details->name, "%s", name ? name : "");
  }
  pthread_mutex_unlock(&mutex);
}

// Frees the thread's own copy.
void crl_thread_name_forget(void) {
  free(thread_name);
  thread_name = NULL;
}

crl_ring *crl_recorder_ring(crl_recorder *recorder) {
  crl_ring *known = __atomic_load_n(&recorder->ring, __ATOMIC_ACQUIRE);
  if (known || recorder->slot >= CRL_RINGS) return known;
  pthread_mutex_lock(&mutex);
  crl_ring *ring = &board->rings[recorder->slot];
  if (!recorder->ring && prepare_to_record() && (populate(ring, sizeof *ring) || !has_directory)) {
    // The ring's previous loop has ended.
    if (recorder->uses > 1) memset(ring, 0, sizeof *ring);
    __atomic_store_n(&recorder->ring, ring, __ATOMIC_RELEASE);
  }
  known = recorder->ring;
  pthread_mutex_unlock(&mutex);
  return known;
}

// Stops publishing once the process has become privileged.
static void leave_if_privileged(void) {
  if (__atomic_load_n(&sharing, __ATOMIC_SEQ_CST) != IS_SHARED || !crl_is_privileged()) return;
  pthread_mutex_lock(&mutex);
  if (!leave_file()) {
    complain("there is no memory for the records of run loops: ", strerror(errno));
    abort();
  }
  close_backing();
  remove_own_files();
  pthread_mutex_unlock(&mutex);
}

uint32_t crl_recorder_take_up(crl_recorder *recorder) {
  leave_if_privileged();
  uint32_t level = crl_level_get();
  if (level > CRL_RECORD) level = CRL_RECORD;
  if (level == CRL_RECORD && !crl_recorder_ring(recorder)) {
    recorder->face->lost = 1;
    level = CRL_WATCH;
  }
  if (level >= CRL_WATCH) prepare_to_sum(recorder);
  count_time(recorder, level);
  // Relaxed: the tool checks the faces again a while after it has set the word.
  if (__atomic_load_n(&crl_instruments.parked, __ATOMIC_RELAXED)) crl_unpark();
  __atomic_store_n(&recorder->level, (uint8_t)level, __ATOMIC_RELAXED);
  __atomic_store_n(&recorder->face->level, (uint8_t)level, __ATOMIC_RELEASE);
  return level;
}

uint8_t crl_mode_index(const char *name) {
  crl_mode_name cut = {{0}};
  snprintf(cut.name, sizeof cut.name, "%s", name);
  pthread_mutex_lock(&mutex);
  uint32_t count = kept.used_modes, index = 0;
  while (index < count && strcmp(kept_modes[index].name, cut.name) != 0) index++;
  if (index == count && count < CRL_MODES) {
    board->modes[count] = kept_modes[count] = cut;
    board->header.used_modes = crl_instruments.used_modes = kept.used_modes = count + 1;
  }
  pthread_mutex_unlock(&mutex);
  return index < CRL_MODES ? (uint8_t)index : 255;
}

void crl_unpark(void) {
  // Once is enough: the tool then polls by itself until there is no more activity.
  if (__atomic_exchange_n(&crl_instruments.parked, 0, __ATOMIC_SEQ_CST) != 0)
    syscall(SYS_futex, &crl_instruments.parked, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}


void crl_level_settle(crl_header *header) {
  // Usually a few iterations suffice. The bound protects against a process that changes the level continuously.
  for (int turn = 0; turn < 1000; turn++) {
    uint32_t level = __atomic_load_n(&header->own_level, __ATOMIC_SEQ_CST);
    for (int index = 0; index < CRL_HOLDERS; index++) {
      crl_holder *holder = &header->holders[index];
      if (__atomic_load_n(&holder->process, __ATOMIC_SEQ_CST) == 0) continue;
      uint32_t held = __atomic_load_n(&holder->level, __ATOMIC_SEQ_CST);
      if (held > level) level = held;
    }
    if (level > CRL_RECORD) level = CRL_RECORD;
    // Repeated until the level is what is held, because another process may be settling it too.
    uint32_t before = __atomic_load_n(&header->level, __ATOMIC_SEQ_CST);
    // Invalidates earlier notes, because causes were not recorded in the meantime.
    if (before < CRL_RECORD && level >= CRL_RECORD) __atomic_fetch_add(&header->raised, 1, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&header->level, level, __ATOMIC_SEQ_CST) == level) return;
  }
}

int crl_holder_take(crl_holder *holder, int process, uint64_t start, uint32_t level) {
  int32_t nobody = 0;
  if (!__atomic_compare_exchange_n(&holder->process, &nobody, process, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 0;
  // Code that searches for ended holders identifies this one only once its start time is set.
  __atomic_store_n(&holder->level, level, __ATOMIC_SEQ_CST);
  __atomic_store_n(&holder->start, start, __ATOMIC_SEQ_CST);
  return 1;
}

int crl_holder_free(crl_holder *holder, int process) {
  int32_t number = __atomic_load_n(&holder->process, __ATOMIC_SEQ_CST);
  if (number == 0 || (number != process && number != -process)) return 0;
  __atomic_store_n(&holder->start, 0, __ATOMIC_SEQ_CST);
  return __atomic_compare_exchange_n(&holder->process, &number, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static int has_ended(int process, uint64_t start) {
  // A process that is not visible in /proc may still exist.
  if (kill(process, 0) != 0 && errno == ESRCH) return 1;
  char name[16], state = 0;
  snprintf(name, sizeof name, "%d", process);
  uint64_t found = start_time(name, &state);
  return found != 0 && start != 0 && (found != start || state == 'Z' || state == 'X');
}

int crl_holders_drop_ended(crl_header *header, int is_elsewhere) {
  int dropped = 0;
  for (int index = 0; index < CRL_HOLDERS; index++) {
    crl_holder *holder = &header->holders[index];
    int32_t number = __atomic_load_n(&holder->process, __ATOMIC_SEQ_CST);
    uint64_t start = __atomic_load_n(&holder->start, __ATOMIC_SEQ_CST);
    if (number == 0 || number == INT32_MIN || (number < 0) != is_elsewhere || !has_ended(number < 0 ? -number : number, start)) continue;
    // Several processes may find it at once, and another tool may already have the entry.
    if (start && !__atomic_compare_exchange_n(&holder->start, &start, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
    dropped |= __atomic_compare_exchange_n(&holder->process, &number, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  return dropped;
}

void crl_holders_check(void) {
  if (crl_holders_drop_ended(&crl_instruments, 0)) crl_level_settle(&crl_instruments);
}

static void settle_own(void) {
  __atomic_store_n(&crl_instruments.own_level, own_level(), __ATOMIC_SEQ_CST);
  crl_level_settle(&crl_instruments);
}

void crl_level_hold(uint32_t level) {
  if (level > CRL_RECORD) return;
  pthread_mutex_lock(&mutex);
  holds[level]++;
  settle_own();
  pthread_mutex_unlock(&mutex);
}

void crl_level_release(uint32_t level) {
  if (level > CRL_RECORD) return;
  pthread_mutex_lock(&mutex);
  if (holds[level] > 0) holds[level]--;
  settle_own();
  pthread_mutex_unlock(&mutex);
}

crl_times crl_times_first(void) {
  pthread_mutex_lock(&mutex);
  crl_times times = kept.calibration[0];
  pthread_mutex_unlock(&mutex);
  return times;
}

const char *crl_instruments_directory(void) { return has_directory ? directory : NULL; }

uint64_t crl_instruments_start(void) { return kept.start; }

int crl_instruments_open(const char *parent) {
  if (crl_is_privileged()) return -EACCES;
  pthread_mutex_lock(&mutex);
  int is_first = !has_board;
  if (is_first) make_board();
  char path[sizeof directory] = "", name[64];
  if (has_directory) snprintf(path, sizeof path, "%s", directory);
  pthread_mutex_unlock(&mutex);
  if (is_first) announce_board();
  snprintf(name, sizeof name, "%d.%llu", getpid(), (unsigned long long)kept.start);
  char *last = strrchr(path, '/');
  if (!parent && !last) return -ENOENT;
  if (!parent) *last = 0;
  errno = 0;
  int outer = open_directory(parent ? parent : path);
  // An existing directory is not owned by the user, or others can write to it.
  if (outer < 0) return errno == EEXIST || errno == 0 ? -EPERM : -errno;
  int place = -1;
  if (mkdirat(outer, name, 0700) == 0 || errno == EEXIST)
    place = openat(outer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int reason = errno;
  close(outer);
  if (place < 0) return -reason;
  struct stat status;
  if (fstat(place, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0) return place;
  close(place);
  return -EPERM;
}

__attribute__((constructor)) static void read_environment(void) {
  find_inherited();
  const char *level = crl_instruments_environment("RUNLOOP_INSTRUMENTS");
  if (!level || !*level || !strcmp(level, "off")) return;
  if (!strcmp(level, "watch")) return crl_level_hold(CRL_WATCH);
  if (!strcmp(level, "record")) return crl_level_hold(CRL_RECORD);
  complain("the instruments are off, as RUNLOOP_INSTRUMENTS is none of off, watch and record: ", level);
}

// Also called if the file cannot be created.
__attribute__((destructor)) static void remove_own_files(void) {
  if (!has_directory || kept.process != getpid()) return;
  has_directory = 0;
  char path[sizeof directory + 8];
  snprintf(path, sizeof path, "%s/rings", directory);
  unlink(path);
  snprintf(path, sizeof path, "%s/agent", directory);
  unlink(path);
  rmdir(directory);
}

// Leaves the shared memory to the parent. A child has one thread, and a copy of its parent's memory.
void crl_instruments_forked(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  mutex = fresh;
  crl_thread_recorder_set(NULL);
  generation++;
  crl_thread_number_forget();
  if (!has_board) return;
  close_backing();
  // A thread of the parent that was about to map other memory does not exist here.
  if (__atomic_load_n(&sharing, __ATOMIC_SEQ_CST) == IS_LEFT) __atomic_store_n(&sharing, IS_SHARED, __ATOMIC_SEQ_CST);
  // Kept because it distinguishes earlier notes.
  kept.raised = crl_instruments.raised;
  __atomic_store_n(&sharing, IS_PRIVATE, __ATOMIC_SEQ_CST);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  mmap(board, sizeof *board, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shares_header) mmap(&header_pages, page_size(), PROT_READ | PROT_WRITE, flags, -1, 0);
  shares_header = 0;
  crl_instruments = kept;
  has_board = has_directory = has_images = 0;
  settle_own();
}
