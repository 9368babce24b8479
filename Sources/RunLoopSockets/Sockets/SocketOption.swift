// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// An option of a socket with its value, as `setsockopt` takes it.
///
/// Pass options to ``Socket/Options/socketOptions``, ``ListeningSocket/Options/socketOptions`` and
/// ``DatagramSocket/Options/socketOptions``, which set them before the socket connects or is bound, and to
/// ``Socket/set(_:)`` later.
public struct SocketOption: Hashable, Sendable {
  /// One call of `setsockopt`.
  private struct Setting: Hashable {
    let level: Int32
    let name: Int32
    let value: [UInt8]

    init(_ level: Int32, _ name: Int32, _ value: Int32) {
      self.level = level
      self.name = name
      self.value = withUnsafeBytes(of: value) { Array($0) }
    }

    init(_ level: Int32, _ name: Int32, _ value: [UInt8]) {
      self.level = level
      self.name = name
      self.value = value
    }
  }

  /// A human-readable description.
  public let description: String
  /// None: the value is none that the system could be given.
  private let settings: [Setting]

  private init(_ description: String, _ settings: [Setting]) {
    self.description = description
    self.settings = settings
  }

  /// Any other option, with its bytes.
  ///
  /// - Parameters:
  ///   - level: The level, such as `SOL_SOCKET`.
  ///   - name: The number of the option at that level.
  ///   - value: The bytes of the value.
  public init(level: Int32, name: Int32, value: [UInt8]) {
    self.init("\(level):\(name)", [Setting(level, name, value)])
  }

  /// Any other option whose value is a C `int`.
  ///
  /// - Parameters:
  ///   - level: The level, such as `SOL_SOCKET`.
  ///   - name: The number of the option at that level.
  ///   - value: The value.
  public init(level: Int32, name: Int32, value: Int32) {
    self.init("\(level):\(name) = \(value)", [Setting(level, name, value)])
  }

  /// Whether several sockets of one user may listen on one port, among which the system distributes connections and
  /// datagrams (`SO_REUSEPORT`).
  public static func reusePort(_ isOn: Bool = true) -> SocketOption {
    SocketOption("SO_REUSEPORT = \(isOn)", [Setting(crl_level_socket, crl_option_reuse_port, isOn ? 1 : 0)])
  }

  /// Whether TCP sends small amounts at once (`TCP_NODELAY`).
  public static func noDelay(_ isOn: Bool = true) -> SocketOption {
    SocketOption("TCP_NODELAY = \(isOn)", [Setting(crl_level_tcp, crl_option_no_delay, isOn ? 1 : 0)])
  }

  /// Whether datagrams may be sent to a broadcast address (`SO_BROADCAST`).
  public static func broadcast(_ isOn: Bool = true) -> SocketOption {
    SocketOption("SO_BROADCAST = \(isOn)", [Setting(crl_level_socket, crl_option_broadcast, isOn ? 1 : 0)])
  }

  /// How many bytes the system keeps of received data (`SO_RCVBUF`); the system doubles it, and has a limit.
  public static func receiveBuffer(bytes: Int) -> SocketOption {
    buffer("SO_RCVBUF", crl_option_receive_buffer, bytes)
  }

  /// How many bytes the system keeps of sent data (`SO_SNDBUF`); the system doubles it, and has a limit.
  public static func sendBuffer(bytes: Int) -> SocketOption { buffer("SO_SNDBUF", crl_option_send_buffer, bytes) }

  private static func buffer(_ text: String, _ name: Int32, _ bytes: Int) -> SocketOption {
    // The kernel reads a negative number as a very large one.
    SocketOption(
      "\(text) = \(bytes)", bytes < 0 ? [] : [Setting(crl_level_socket, name, Int32(clamping: bytes))])
  }

  /// Makes TCP probe whether a silent peer is still there, and end the connection if it does not answer
  /// (`SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
  ///
  /// - Parameters:
  ///   - idle: The silence after which the first probe is sent; whole seconds, rounded up, from 1 to 32767.
  ///   - interval: The time between two probes, likewise.
  ///   - count: The number of unanswered probes after which the connection fails with `ETIMEDOUT`; from 1 to 127.
  public static func keepAlive(idle: Duration, interval: Duration, count: Int) -> SocketOption {
    SocketOption(
      "SO_KEEPALIVE(\(idle.text), \(interval.text), \(count))",
      [
        Setting(crl_level_tcp, crl_option_keep_alive_idle, units(of: idle, perSecond: 1)),
        Setting(crl_level_tcp, crl_option_keep_alive_interval, units(of: interval, perSecond: 1)),
        Setting(crl_level_tcp, crl_option_keep_alive_count, Int32(clamping: count)),
        Setting(crl_level_socket, crl_option_keep_alive, 1),
      ])
  }

  /// Makes TCP not probe whether a silent peer is still there.
  public static let noKeepAlive = SocketOption(
    "SO_KEEPALIVE = false", [Setting(crl_level_socket, crl_option_keep_alive, 0)])

  /// The time without an acknowledgement of sent data after which TCP ends the connection (`TCP_USER_TIMEOUT`); whole
  /// milliseconds, rounded up; zero means as long as the system tries.
  public static func userTimeout(_ time: Duration) -> SocketOption {
    SocketOption(
      "TCP_USER_TIMEOUT = \(time.text)",
      [Setting(crl_level_tcp, crl_option_user_timeout, units(of: time, perSecond: 1000))])
  }

  /// How many parts of a second a time has, rounded up; -1, which the system rejects, for a negative one.
  private static func units(of time: Duration, perSecond count: Int64) -> Int32 {
    guard time >= .zero else { return -1 }
    let size = Int128(1_000_000_000_000_000_000 / count)
    let (whole, rest) = time.attoseconds.quotientAndRemainder(dividingBy: size)
    return Int32(clamping: whole + (rest > 0 ? 1 : 0))
  }

  /// Sets the option of a socket.
  func apply(to descriptor: Int32) throws(SocketError) {
    do throws(SystemError) {
      guard !settings.isEmpty else { throw SystemError(call: SystemCall.socketOption.rawValue, number: EINVAL) }
      for setting in settings {
        _ = try SystemCall.socketOption.make {
          crl_socket_set_option(
            descriptor, setting.level, setting.name, setting.value, UInt32(setting.value.count))
        }
      }
    } catch {
      throw .option(self, error)
    }
  }
}

extension SocketOption: CustomStringConvertible {}

extension OwnedDescriptor {
  func set(_ options: [SocketOption]) throws(SocketError) { for option in options { try option.apply(to: number) } }
}
