// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore
import RunLoopSystemEvents

extension ListeningSocket {
  /// Takes over a listening descriptor, such as one from ``SocketActivation`` or from a previous instance of the
  /// program.
  ///
  /// The descriptor becomes nonblocking and close-on-exec, and the socket owns it. The options for binding and
  /// listening, ``Options/backlog``, ``Options/replacesStaleFile`` and ``Options/fileMode``, are not applied.
  ///
  /// - Parameters:
  ///   - descriptor: A stream socket that is listening.
  ///   - options: The configuration of the socket. Set `removesFile` only if the file of a Unix address should be
  ///     removed when the socket is closed; the program that created the file, such as systemd, may need it.
  ///   - handler: Called once the socket is in a loop. It is released when the socket is invalidated.
  /// - Throws: ``SocketError/descriptor(_:_:)`` with the error of `getsockopt`: `EBADF` or `ENOTSOCK`, `EPROTOTYPE`
  ///   for a message-oriented socket, or `EINVAL` for one that is not listening; or with the error of `fcntl` or
  ///   `getsockname`. ``SocketError/option(_:_:)``. The caller then still owns the descriptor.
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

  /// Ends the socket but leaves its listening descriptor open for another program, so that waiting connections are
  /// kept.
  ///
  /// The socket is over, as after ``BaseSocket/invalidate()``, but its file stays.
  ///
  /// - Returns: A listening descriptor, owned by the caller and marked close-on-exec.
  /// - Throws: ``SocketError/invalid``, or ``SocketError/system(_:address:)`` for `fcntl (F_DUPFD_CLOEXEC)` with
  ///   `EMFILE`, after which the socket continues.
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
