// SPDX-License-Identifier: Apache-2.0

// Files of other users are accessed with the rights of their user: opened by a thread with these rights, and parsed by
// a restricted child.

#include "CRunLoopToolKit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// System calls that affect only the calling thread.

typedef struct __user_cap_data_struct capabilities[2];

static int capability_call(long number, capabilities data) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  return syscall(number, &header, data) == 0 ? 0 : -errno;
}

// Disables the capabilities that override file permissions, and returns those that were enabled.
static int set_aside(uint32_t *before) {
  const uint32_t files = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER;
  capabilities data;
  int failure = capability_call(SYS_capget, data);
  if (failure) return failure;
  *before = data[0].effective & files;
  if (*before == 0) return 0;
  data[0].effective &= ~files;
  return capability_call(SYS_capset, data);
}

static void put_back(uint32_t before) {
  capabilities data;
  if (before == 0 || capability_call(SYS_capget, data) != 0) return;
  data[0].effective |= before;
  capability_call(SYS_capset, data);
}

int crlt_files_begin(uint32_t user, uint32_t group, crlt_files *before) {
  *before = (crlt_files){0};
  // A process of another user keeps its user, but may have been granted root's file capabilities.
  if (geteuid() != 0) return set_aside(&before->capabilities);
  int count = getgroups(0, NULL);
  if (count < 0) return -errno;
  before->groups = calloc((size_t)count + 1, sizeof *before->groups);
  if (!before->groups) return -ENOMEM;
  before->count = getgroups(count, before->groups);
  gid_t one = group;
  if (before->count < 0 || syscall(SYS_setgroups, 1ul, &one) != 0) {
    int reason = errno;
    free(before->groups);
    return -reason;
  }
  before->group = (uint32_t)setfsgid(group);
  before->user = (uint32_t)setfsuid(user);
  // Neither call reports failure.
  if ((uint32_t)setfsgid((gid_t)-1) == group && (uint32_t)setfsuid((uid_t)-1) == user) return 0;
  crlt_files_end(before);
  return -EPERM;
}

void crlt_files_end(crlt_files *before) {
  put_back(before->capabilities);
  if (!before->groups) return;
  setfsuid(before->user);
  setfsgid(before->group);
  // If this fails, the thread has fewer rights than before, not more.
  syscall(SYS_setgroups, (long)before->count, before->groups);
  free(before->groups);
}

static void limit(int resource, rlim_t most) {
  struct rlimit limits = {most, most};
  // Keeps a limit that is already lower.
  struct rlimit now;
  if (getrlimit(resource, &now) == 0 && now.rlim_max < most) limits.rlim_cur = limits.rlim_max = now.rlim_max;
  setrlimit(resource, &limits);
}

// Drops to the rights of a user, and returns whether that succeeded.
static int become(uint32_t user, uint32_t group) {
  capabilities none = {{0}};
  if (geteuid() != 0) return user == geteuid() && capability_call(SYS_capset, none) == 0;
  if (user != 0) {
    gid_t one = group;
    return setgroups(1, &one) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0 &&
           getuid() == user && geteuid() == user;
  }
  // Without capabilities, root can still access its own files.
  prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
  return capability_call(SYS_capset, none) == 0;
}

// Restricts a forked child to its standard input, a pipe as standard output and limited resources.
static void restrict_child(const crlt_limits *limits, uint32_t user, uint32_t group, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  // A new session has no terminal, and its process group can be ended as a whole.
  if (setsid() < 0 || !become(user, group)) _exit(126);
  // Ambient capabilities would be inherited by the program.
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // After changing the user, which resets this setting.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) _exit(126);
  limit(RLIMIT_AS, limits->memory);
  limit(RLIMIT_CPU, limits->seconds);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  int nothing = open("/dev/null", O_RDWR);
  // If this process has closed its standard streams, these descriptors may have their numbers.
  int input = fcntl(limits->input > 0 ? limits->input : nothing, F_DUPFD, 3);
  output = fcntl(output, F_DUPFD, 3);
  nothing = fcntl(nothing, F_DUPFD, 3);
  if (chdir("/") != 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(nothing, 2) < 0) _exit(126);
  if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0) {
    struct rlimit files;
    rlim_t end = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < 1 << 20 ? files.rlim_max : 1 << 20;
    for (rlim_t number = 3; number < end; number++) close((int)number);
  }
  // Set last, because the parent may have more files open.
  limit(RLIMIT_NOFILE, 64);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

int crlt_do_restricted(
  void (*work)(void *context), void *context, const crlt_limits *limits, uint32_t user, uint32_t group, int *output
) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    restrict_child(limits, user, group, ends[1], parent);
    work(context);
    _exit(0);
  }
  int reason = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return -reason;
  }
  *output = ends[0];
  return child;
}

static void execute(void *context) {
  char *const *arguments = context;
  char *const environment[] = {NULL};
  execve(arguments[0], arguments, environment);
  _exit(127);
}

int crlt_run_restricted(
  const char *const arguments[], const crlt_limits *limits, uint32_t user, uint32_t group, int *output
) {
  return crlt_do_restricted(execute, (void *)arguments, limits, user, group, output);
}

int crlt_end_restricted(int process, int milliseconds) {
  siginfo_t info = {0};
  for (int waited = 0; waited < milliseconds; waited++) {
    int answer = waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT | WNOHANG);
    if ((answer != 0 && errno != EINTR) || info.si_pid != 0) break;
    usleep(1000);
  }
  // The group first: until its leader has been waited for, no other process can have its ID.
  kill(-process, SIGKILL);
  kill(process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return -errno;
  return status;
}
