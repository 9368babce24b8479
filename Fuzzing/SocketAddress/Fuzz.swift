// SPDX-License-Identifier: Apache-2.0

/// The entry point for libFuzzer: a text or a kernel address, selected by the first byte.
///
/// It must be rejected, or be an address whose description parses to the same one. A kernel address of any length
/// must have a description.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  guard let first = bytes.first else { return 0 }
  let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
  if first & 1 == 0 {
    guard let address = try? SocketAddress(String(decoding: rest, as: UTF8.self)) else { return 0 }
    precondition((try? SocketAddress(address.description)) == address, "another address is read: \(address)")
    precondition((address.family == .unix) == (address.host == nil) && (address.host == nil) == (address.port == nil))
    let copy = address.withBytes { SocketAddress(bytes: UnsafeRawBufferPointer(start: $0, count: Int($1))) }
    precondition(copy == address, "its bytes are another address")
  } else {
    guard let address = SocketAddress(bytes: rest) else { return 0 }
    precondition(address.path == nil || address.abstractName == nil)
    precondition(!address.description.isEmpty)
    precondition(address.family == .unix || address.path == nil)
  }
  return 0
}
