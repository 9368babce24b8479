// SPDX-License-Identifier: Apache-2.0

// Re-exports the system's C library. This is the only place that names the system's module.

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
