// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension MessagePort {
  /// A message that a local port has received.
  ///
  /// Can be used from any thread.
  public final class Request: Sendable {
    /// What the sender calls the message.
    public let id: Int32
    /// The payload.
    public let bytes: [UInt8]
    /// Open descriptors, which belong to the message: they are closed with it, unless somebody takes them.
    public let descriptors: [Descriptor]
    /// Who has sent it.
    public let sender: Credentials
    /// Whether the sender waits for a reply.
    public let expectsReply: Bool

    private let token: UInt64
    /// Whom to answer, retained, until that is done.
    private let client: Atomic<Unmanaged<LocalClient>?>

    init(_ frame: MessageFrame, _ bytes: [UInt8], _ descriptors: [Descriptor], from client: LocalClient) {
      id = frame.id
      self.bytes = bytes
      self.descriptors = descriptors
      sender = client.credentials
      expectsReply = frame.kind == .request
      token = frame.token
      self.client = Atomic(Unmanaged.passRetained(client))
    }

    private func takeClient() -> LocalClient? {
      client.exchange(nil, ordering: .acquiringAndReleasing)?.takeRetainedValue()
    }

    /// A request that nobody has replied to has no reply, of which the sender is notified.
    deinit { reply(nil) }

    /// Sends the reply, or says that there is none.
    ///
    /// Only the first counts. Nothing happens if the sender waits for none, or is gone: that is counted
    /// (``Local/Statistics/droppedReplyCount``). The call does not block: what the sender does not read waits here.
    public func reply(_ reply: Reply?) {
      guard let client = takeClient() else { return }
      if expectsReply { client.answer(token, bytes.count, reply) } else { client.noteReceived(token, bytes.count) }
    }

    /// Notifies the sender that nobody will take the message.
    func reject(_ reason: Rejection) { takeClient()?.reject(token, bytes.count, reason) }

    /// Notes that a one-way message has come to somebody.
    func noteTaken() { if !expectsReply { reply(nil) } }
  }
}

extension MessagePort.Request: CustomDebugStringConvertible {
  /// The message's id and size.
  public var debugDescription: String {
    "<MessagePort.Request>{id = \(id), bytes = \(bytes.count), descriptors = \(descriptors.count), "
      + "expects reply = \(expectsReply ? "Yes" : "No")}"
  }
}
