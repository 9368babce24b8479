// SPDX-License-Identifier: Apache-2.0

#include "CallFilter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the architecture's number is not known"
#endif

// Calls that the C library's header may be too old to name. Their numbers are the same on all architectures.
static const struct { const char *name; int number; } calls[] = {
  {"accept4", SYS_accept4},
  {"clone3", 435},
  {"close_range", 436},
  {"copy_file_range", SYS_copy_file_range},
  {"epoll_create1", SYS_epoll_create1},
  {"epoll_pwait2", 441},
  {"eventfd2", SYS_eventfd2},
  {"faccessat2", 439},
  {"fallocate", SYS_fallocate},
  {"fchmodat2", 452},
  {"futex_waitv", 449},
  {"getrandom", SYS_getrandom},
  {"inotify_add_watch", SYS_inotify_add_watch},
  {"inotify_init1", SYS_inotify_init1},
  {"io_uring_setup", 425},
  {"kcmp", SYS_kcmp},
  {"madvise", SYS_madvise},
  {"membarrier", SYS_membarrier},
  {"memfd_create", SYS_memfd_create},
  {"openat2", 437},
  {"perf_event_open", SYS_perf_event_open},
  {"pidfd_getfd", 438},
  {"pidfd_open", 434},
  {"pidfd_send_signal", 424},
  {"pipe2", SYS_pipe2},
  {"prctl", SYS_prctl},
  {"process_vm_readv", SYS_process_vm_readv},
  {"recvmmsg", SYS_recvmmsg},
  {"rseq", SYS_rseq},
  {"sched_getaffinity", SYS_sched_getaffinity},
  {"sched_getscheduler", SYS_sched_getscheduler},
  {"sched_yield", SYS_sched_yield},
  {"sendmmsg", SYS_sendmmsg},
  {"set_robust_list", SYS_set_robust_list},
  {"setpriority", SYS_setpriority},
  {"signalfd4", SYS_signalfd4},
  {"statx", SYS_statx},
  {"timerfd_create", SYS_timerfd_create},
  {"timerfd_settime", SYS_timerfd_settime},
  {"unshare", SYS_unshare},
  {"userfaultfd", SYS_userfaultfd},
  {"waitid", SYS_waitid},
};

int call_filter_number(const char *name) {
  for (size_t index = 0; index < sizeof calls / sizeof *calls; index++)
    if (!strcmp(calls[index].name, name)) return calls[index].number;
  return -1;
}

int call_filter_refuse(int number, int argument, uint32_t value, int error) {
  struct sock_filter program[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 5),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
    // The lower half of the argument, or the call's number again if all calls match.
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
             argument < 0 ? offsetof(struct seccomp_data, nr)
                          : offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (uint32_t)argument),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument < 0 ? (uint32_t)number : value, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -errno;
  // Applies to all existing threads.
  long answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  return answer < 0 ? -errno : answer > 0 ? -EBUSY : 0;
}

int call_filter_hide_proc(void) {
  int flags = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (unshare(flags) < 0) return -errno;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return -errno;
  return mount("none", "/proc", "tmpfs", MS_RDONLY, NULL) < 0 ? -errno : 0;
}

// Prints whether a descriptor is open, for a test that starts a program with `is-open=NUMBER`. Swift's arguments need
// /proc.
__attribute__((constructor)) static void say_what_is_open(int count, char **arguments) {
  static const char question[] = "is-open=";
  if (count < 2 || strncmp(arguments[1], question, sizeof question - 1) != 0) return;
  puts(fcntl(atoi(arguments[1] + sizeof question - 1), F_GETFD) < 0 ? "closed" : "open");
  exit(0);
}

int call_filter_become(unsigned user) {
  if (setgroups(0, NULL) < 0 || setgid(user) < 0 || setuid(user) < 0) return -errno;
  // Restores the default, as if this user had started the program.
  return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int call_filter_try_timer(void) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (timer < 0) return -errno;
  struct itimerspec date = {.it_value = {.tv_sec = 1000}};
  int answer = timerfd_settime(timer, 0, &date, NULL) < 0 ? -errno : 0;
  close(timer);
  return answer;
}
