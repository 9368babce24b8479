// SPDX-License-Identifier: Apache-2.0

/// The names of blocking system calls, by their numbers on this architecture.
package enum SystemCallNames {
  /// Returns the name of a system call.
  package static func name(_ number: Int) -> String { names[number] ?? "system call \(number)" }

  #if arch(x86_64)
    private static let names: [Int: String] = [
      0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 7: "poll", 16: "ioctl", 17: "pread", 18: "pwrite",
      19: "readv", 20: "writev", 23: "select", 24: "sched_yield", 26: "msync", 34: "pause", 35: "nanosleep",
      40: "sendfile", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
      56: "clone", 58: "vfork", 59: "execve", 61: "wait4", 65: "semop", 69: "msgsnd", 70: "msgrcv", 72: "fcntl",
      73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir",
      87: "unlink", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 162: "sync", 202: "futex", 208: "io_getevents",
      217: "getdents64", 219: "restart_syscall", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait",
      242: "mq_timedsend", 243: "mq_timedreceive", 247: "waitid", 257: "openat", 262: "newfstatat", 263: "unlinkat",
      264: "renameat", 270: "pselect6", 271: "ppoll", 275: "splice", 276: "tee", 278: "vmsplice", 281: "epoll_pwait",
      285: "fallocate", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg", 306: "syncfs", 307: "sendmmsg",
      318: "getrandom", 326: "copy_file_range", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2",
      449: "futex_waitv", 455: "futex_wait",
    ]
  #elseif arch(arm64)
    private static let names: [Int: String] = [
      4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 34: "mkdirat", 35: "unlinkat",
      38: "renameat", 45: "truncate", 46: "ftruncate", 47: "fallocate", 56: "openat", 57: "close", 61: "getdents64",
      63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread", 68: "pwrite", 69: "preadv", 70: "pwritev",
      71: "sendfile", 72: "pselect6", 73: "ppoll", 75: "vmsplice", 76: "splice", 77: "tee", 79: "newfstatat",
      81: "sync", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
      124: "sched_yield", 128: "restart_syscall", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 182: "mq_timedsend",
      183: "mq_timedreceive", 188: "msgrcv", 189: "msgsnd", 192: "semtimedop", 193: "semop", 202: "accept",
      203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 220: "clone", 221: "execve",
      227: "msync", 242: "accept4", 243: "recvmmsg", 260: "wait4", 267: "syncfs", 269: "sendmmsg", 278: "getrandom",
      285: "copy_file_range", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
      455: "futex_wait",
    ]
  #else
    private static let names: [Int: String] = [:]
  #endif

  /// The calls whose first argument is a file descriptor.
  static let ofDescriptors: Set<String> = [
    "read", "write", "pread", "pwrite", "readv", "writev", "preadv", "pwritev", "ioctl", "connect", "accept", "accept4",
    "sendto", "recvfrom", "sendmsg", "recvmsg", "recvmmsg", "sendmmsg", "fcntl", "flock", "fsync", "fdatasync",
    "ftruncate", "fallocate", "getdents64", "close", "syncfs", "splice", "tee", "vmsplice", "epoll_wait", "epoll_pwait",
    "epoll_pwait2", "sendfile", "copy_file_range", "io_uring_enter",
  ]
}
