// SPDX-License-Identifier: Apache-2.0

public import Foundation

// Pairs of streams, which Foundation provides on Apple's systems but not on Linux.
extension Stream {
  /// Creates the two streams of a connection to a host, which is established when the first of them is opened.
  ///
  /// The host is resolved and all of its addresses are tried, as by `Socket.connect(toHost:)`, on a thread of the
  /// library. The streams can be scheduled in any modes of any loops with `schedule(in:forMode:)`, where their
  /// delegates are notified. As on Apple's systems, reading blocks while there are no bytes, writing blocks while there
  /// is no space, and both block while the connection is being established; a delegate that is notified never blocks.
  /// The error of a stream is a `HostConnectionError` or an error of `NSPOSIXErrorDomain`. Closing the output stream
  /// first shuts down the connection's writing side; the descriptor is closed when both are released.
  ///
  /// To use TLS 1.2 or 1.3 with the system's OpenSSL, the system's root certificates and the host's name, set
  /// `Stream.PropertyKey.socketSecurityLevelKey` to `StreamSocketSecurityLevel.negotiatedSSL`; `tlSv1` has the same
  /// effect here. It can be set on either stream or both, before they are opened or later, as for STARTTLS, in which
  /// case no other thread may be reading meanwhile. Of Apple's `kCFStreamPropertySSLSettings`, `kCFStreamSSLLevel`,
  /// `kCFStreamSSLPeerName` and `kCFStreamSSLValidatesCertificateChain` are supported. Use
  /// ``Foundation/Stream/PropertyKey/tlsContextKey`` for all other settings. A setting that is not available makes the
  /// connection fail with a ``StreamSecurityError``, whether or not the result of `setProperty(_:forKey:)` is checked.
  /// The streams are open when the connection is secured. If that fails, the error is a `SocketError` or a `TLSError`.
  ///
  /// - Parameters:
  ///   - hostname: A name or a numeric address.
  ///   - port: The port. If the number is not a valid port, opening the streams fails.
  ///   - inputStream: Receives the input stream. Pass `nil` to create none.
  ///   - outputStream: Receives the output stream. Pass `nil` to create none.
  ///
  /// The corresponding Foundation method has the same name.
  public class func getStreamsToHost(
    withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
    outputStream: UnsafeMutablePointer<OutputStream?>?
  ) {
    let connection = StreamConnection(host: hostname, port: port)
    if let inputStream { inputStream.pointee = PairedInputStream(connection) }
    if let outputStream { outputStream.pointee = PairedOutputStream.make(connection) }
  }

  /// Creates an output stream and an input stream that reads what is written to it, through a buffer in memory.
  ///
  /// They can be used on different threads, and scheduled in any modes of any loops. As on Apple's systems, reading
  /// blocks while the buffer is empty and writing blocks while it is full; a delegate that is notified never blocks.
  /// The input stream reaches its end when the output stream is closed, and writing fails with `EPIPE` when the input
  /// stream is closed.
  ///
  /// - Parameters:
  ///   - bufferSize: The size of the buffer in bytes, at least 1.
  ///   - inputStream: Receives the input stream.
  ///   - outputStream: Receives the output stream.
  ///
  /// The corresponding Foundation method has the same name.
  public class func getBoundStreams(
    withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>,
    outputStream: UnsafeMutablePointer<OutputStream?>
  ) {
    let buffer = StreamBuffer(capacity: bufferSize)
    inputStream.pointee = PairedInputStream(buffer)
    outputStream.pointee = PairedOutputStream.make(buffer)
  }
}
