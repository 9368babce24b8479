// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension Exchange {
  /// What is done with the response of an exchange.
  enum Plan {
    /// It is delivered.
    case deliver
    case follow(HTTP.Hop)
    case authenticate(Challenge)
    case again(after: Duration)
    /// The library answers the proxy by itself.
    case leaveToLibrary
    /// The whole body arrived earlier.
    case complete
    /// The server does not support `Expect`.
    case withoutExpectation
    /// The server has not processed the request on this connection, and may on another.
    case misdirected
  }

  /// The state of an exchange, from the request to the end of the response.
  ///
  /// Each exchange begins with a new value, so that nothing of the one before is left.
  struct Progress {
    /// Whether it uses no kept connection.
    var isFresh = false
    /// Whether the library has the request.
    var hasAsked = false
    /// What is done with the response; nil until its head has arrived.
    var plan: Plan?
    var head: Head?
    /// How many bytes of the body have arrived, as they are on the wire.
    var wireCount: Int64 = 0
    /// How many bytes have arrived of a response that is not delivered.
    var drained = 0
    /// Until when a response is read that is not delivered.
    var drainDue = Tick.never
    /// Until when a connection is waited for.
    var waitDue = Tick.never
    /// How long the look-up of names took, in nanoseconds.
    var lookupTime: Int64 = 0
    /// How long the parts took, once the library has ended.
    var timings = HTTP.Timings()
    var decoder: Decoder?
    /// Whether the body has ended while it was held, and part of it was not delivered yet.
    var hasEndedHeld = false
  }
}

/// Why no bytes of a body are taken now.
struct BodyHolds: OptionSet {
  let rawValue: UInt8

  /// The user holds it.
  static let user = Self(rawValue: 1)
  /// The receiver takes no more.
  static let receiver = Self(rawValue: 2)
  /// More is decoded after all others have had a turn.
  static let turn = Self(rawValue: 4)
  /// The interceptors are asked about the head.
  static let review = Self(rawValue: 8)
  /// Those that the program has made, which the state of the request shows.
  static let shown: Self = [.user, .receiver]
}

/// How a request proves who sends it.
struct Authentication {
  var credential: HTTP.Credential?
  /// Where the credential is sent.
  var origin: String?
  var challenge: Challenge?
  /// How often the challenge was answered.
  var uses: UInt32 = 0
  /// Whether the server has accepted that.
  var isAccepted = false
  /// How many credentials the server has rejected.
  var failures = 0
  /// The method of the proxy's authentication, where the library could not find it out with this body.
  var ofProxy: Int?

  mutating func answer(_ asked: Challenge) {
    challenge = asked
    uses = 0
    isAccepted = false
  }

  /// The value of `Authorization` for a request; nil if no server has asked, or there is no credential.
  mutating func authorization(_ method: HTTP.Method, _ target: String, _ body: HTTP.Content?) -> String? {
    guard let credential, let challenge else { return nil }
    uses &+= 1
    let clientNonce = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    return challenge.answer(
      credential, method: method, target: target, clientNonce: clientNonce, use: uses, body: body)
  }

  /// A redirect leads elsewhere.
  mutating func leaveOrigin() {
    challenge = nil
    failures = 0
  }
}
