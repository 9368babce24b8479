// SPDX-License-Identifier: Apache-2.0

public import Foundation

// What Foundation on Apple's systems has and Foundation on Linux has not: pairs of streams.
extension Stream {
  /// Makes the two streams of a connection to a host, which is made when the first of them is opened.
  ///
  /// The host is looked up and all of its addresses are tried, as `Socket.connect(toHost:)` does, on a thread of the
  /// library's. Schedule the streams in any modes of any loops with `schedule(in:forMode:)`; their delegates are
  /// notified there. Reading without bytes, writing without space, and both while the connection is being made wait, as
  /// on Apple's systems: a delegate that is notified never waits. The error of a stream is a `HostConnectionError`, or
  /// one of `NSPOSIXErrorDomain`. An output stream that is closed first ends the connection's writing side; the
  /// descriptor is closed when both streams are released.
  ///
  /// A program sets `Stream.PropertyKey.socketSecurityLevelKey` to `StreamSocketSecurityLevel.negotiatedSSL` for TLS
  /// 1.2 or 1.3 by the system's OpenSSL, with the system's roots and the host's name; `tlSv1` means the same here. It
  /// may be set on either stream or both, before they are opened or later, as for STARTTLS; then no other thread may be
  /// reading meanwhile. Of Apple's `kCFStreamPropertySSLSettings`, `kCFStreamSSLLevel`, `kCFStreamSSLPeerName` and
  /// `kCFStreamSSLValidatesCertificateChain` are known. For all else there is
  /// ``Foundation/Stream/PropertyKey/tlsContextKey``. What cannot be had keeps the connection from being made, with a
  /// ``StreamSecurityError``, whether the program looks at what `setProperty(_:forKey:)` returns or not. The streams
  /// open when the connection is secured; the error of one that is not is a `SocketError` or a `TLSError`.
  ///
  /// - Parameters:
  ///   - hostname: A name, or a numeric address.
  ///   - port: The port. One that is none makes streams whose opening fails.
  ///   - inputStream: Where to put the stream that reads; nil: there is none.
  ///   - outputStream: Where to put the stream that writes; nil: there is none.
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

  /// Makes two streams of which one reads what is written to the other, through a buffer in memory.
  ///
  /// They may be used on different threads, and scheduled in any modes of any loops. Reading waits while the buffer is
  /// empty, writing while it is full, as on Apple's systems: a delegate that is notified never waits. The reader's end
  /// comes when the writer is closed, and a write fails with `EPIPE` when the reader is.
  ///
  /// - Parameters:
  ///   - bufferSize: How many bytes the buffer has, at least one.
  ///   - inputStream: Where to put the stream that reads.
  ///   - outputStream: Where to put the stream that writes.
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
