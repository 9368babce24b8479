// SPDX-License-Identifier: Apache-2.0

// The system's C library, under one name: what a system calls its module is written here and nowhere else.

#if canImport(Glibc)
  @_exported public import Glibc
#elseif canImport(Musl)
  @_exported public import Musl
#elseif canImport(Bionic)
  @_exported public import Bionic
#elseif canImport(Android)
  @_exported public import Android
#else
  #error("RunLoopKit knows no C library of this system: it runs on Linux")
#endif
