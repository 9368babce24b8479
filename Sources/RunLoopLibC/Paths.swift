// SPDX-License-Identifier: Apache-2.0

// The C library's calls that take paths, for Swift strings. They fail with `EINVAL` if the string contains a zero
// byte, where C would use the part before it. Overload resolution prefers these to the C library's own functions,
// which take pointers; `.ci/lint` finds code that makes pointers. The project's own C functions take a `String`
// unchecked, so their callers check names and paths first.

package func open(_ path: String, _ flags: Int32) -> Int32 {
  CText.call(path, failing: -1) { open($0, flags) }
}

package func openat(_ directory: Int32, _ name: String, _ flags: Int32) -> Int32 {
  CText.call(name, failing: -1) { openat(directory, $0, flags) }
}

package func stat(_ path: String, _ status: UnsafeMutablePointer<stat>) -> Int32 {
  CText.call(path, failing: -1) { stat($0, status) }
}

package func lstat(_ path: String, _ status: UnsafeMutablePointer<stat>) -> Int32 {
  CText.call(path, failing: -1) { lstat($0, status) }
}

package func fstatat(
  _ directory: Int32, _ name: String, _ status: UnsafeMutablePointer<stat>, _ flags: Int32
) -> Int32 {
  CText.call(name, failing: -1) { fstatat(directory, $0, status, flags) }
}

package func access(_ path: String, _ mode: Int32) -> Int32 {
  CText.call(path, failing: -1) { access($0, mode) }
}

package func faccessat(_ directory: Int32, _ name: String, _ mode: Int32, _ flags: Int32) -> Int32 {
  CText.call(name, failing: -1) { faccessat(directory, $0, mode, flags) }
}

package func readlink(_ path: String, _ target: UnsafeMutablePointer<CChar>, _ size: Int) -> Int {
  CText.call(path, failing: -1) { readlink($0, target, size) }
}

package func realpath(_ path: String, _ resolved: UnsafeMutablePointer<CChar>?) -> UnsafeMutablePointer<CChar>? {
  CText.call(path, failing: nil) { realpath($0, resolved) }
}

package func opendir(_ path: String) -> OpaquePointer? {
  CText.call(path, failing: nil) { opendir($0) }
}

package func loadLibrary(_ path: String, _ flags: Int32) -> UnsafeMutableRawPointer? {
  CText.call(path, failing: nil) { dlopen($0, flags) }
}

@discardableResult
package func mkdir(_ path: String, _ mode: mode_t) -> Int32 {
  CText.call(path, failing: -1) { mkdir($0, mode) }
}

@discardableResult
package func rmdir(_ path: String) -> Int32 {
  CText.call(path, failing: -1) { rmdir($0) }
}

@discardableResult
package func unlink(_ path: String) -> Int32 {
  CText.call(path, failing: -1) { unlink($0) }
}

@discardableResult
package func unlinkat(_ directory: Int32, _ name: String, _ flags: Int32) -> Int32 {
  CText.call(name, failing: -1) { unlinkat(directory, $0, flags) }
}

package func chmod(_ path: String, _ mode: mode_t) -> Int32 {
  CText.call(path, failing: -1) { chmod($0, mode) }
}

package func chdir(_ path: String) -> Int32 {
  CText.call(path, failing: -1) { chdir($0) }
}

package func rename(_ path: String, _ other: String) -> Int32 {
  CText.call(path, failing: -1) { path in CText.call(other, failing: -1) { rename(path, $0) } }
}
