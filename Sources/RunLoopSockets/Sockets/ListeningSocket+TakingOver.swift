// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension ListeningSocket {
  /// Takes over a descriptor that listens, such as one of ``SocketActivation`` or of the program that ran before.
  ///
  /// From now on the descriptor does not block, is closed on exec, and belongs to the socket. The options that concern
  /// binding and listening are not applied: ``Options/backlog``, ``Options/replacesStaleFile`` and
  /// ``Options/fileMode``.
  ///
  /// - Parameters:
  ///   - descriptor: A stream socket that listens.
  ///   - options: How to accept. The file of a Unix address is removed when the socket is closed only if `removesFile`
  ///     is set here; the maker of the file, such as systemd, may want to keep it.
  ///   - handler: Called when the socket is in a loop. It is released when the socket is invalidated.
  /// - Throws: ``SocketError/descriptor(_:_:)``: `getsockopt` with `EBADF` or `ENOTSOCK`, with `EPROTOTYPE` for a
  ///   socket of messages, with `EINVAL` for one that does not listen; `fcntl`, `getsockname`;
  ///   ``SocketError/option(_:_:)``. The descriptor stays the caller's then.
  public convenience init(
    takingOver descriptor: Int32, options: Options, handler: Handler? = nil
  ) throws(SocketError) {
    var address: SocketAddress?
    do throws(SystemError) {
      let type = try SystemCall.socketOptionRead.make { crl_socket_type(descriptor) }
      guard type == crl_socket_type_stream else {
        throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EPROTOTYPE)
      }
      guard try SystemCall.socketOptionRead.make({ crl_socket_accepts(descriptor) }) == 1 else {
        throw SystemError(call: SystemCall.socketOptionRead.rawValue, number: EINVAL)
      }
      _ = try SystemCall.descriptorFlags.make { crl_descriptor_set_flags(descriptor) }
      address = try SocketAddress.ask(.socketName) { crl_socket_name(descriptor, $0, $1) }
    } catch {
      throw .descriptor(descriptor, error)
    }
    guard let address else {
      throw .descriptor(descriptor, SystemError(call: SystemCall.socketName.rawValue, number: EAFNOSUPPORT))
    }
    for option in options.socketOptions { try option.apply(to: descriptor) }
    self.init(
      listening: OwnedDescriptor(descriptor), at: address, file: options.removesFile ? SocketFile(address) : nil,
      options: options, handler: handler)
  }

  /// Ends the socket without closing its descriptor, with which another program can go on: waiting connections stay.
  ///
  /// The socket is over as after ``BaseSocket/invalidate()``, but its file stays.
  ///
  /// - Returns: A descriptor that listens, is closed on exec, and is the caller's.
  /// - Throws: ``SocketError/invalid``, or ``SocketError/system(_:address:)``: `fcntl (F_DUPFD_CLOEXEC)` with `EMFILE`;
  ///   the socket goes on then.
  public func handOver() throws(SocketError) -> Int32 {
    guard lock.lockUnlessParents() else { throw .invalid }
    guard let descriptor else {
      lock.unlock()
      throw .invalid
    }
    let copy: Int32
    do throws(SystemError) {
      copy = try SystemCall.duplicate.make {
        let answer = fcntl(descriptor.number, F_DUPFD_CLOEXEC, 3)
        return answer < 0 ? -errno : answer
      }
    } catch {
      lock.unlock()
      throw .system(error, address: address)
    }
    let remains = finish(isInvalidated: true)
    lock.unlock()
    remains?.release(nil, keepsFile: true)
    return copy
  }
}
