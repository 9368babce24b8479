// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The header fields of a request or an answer, in their order.
  ///
  /// Names are compared without regard to case. A name may occur several times.
  public struct Headers: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// One field.
    public struct Field: Hashable, Sendable {
      /// The name, as it was written.
      public let name: String
      /// The value, without the space around it.
      public let value: String

      /// Makes a field.
      public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
      }
    }

    /// What an answer has brought, until something of it is changed; then there is nothing in `made`.
    private var wire: WireFields?
    private var made: [Field]

    /// The fields in their order.
    ///
    /// - Complexity: O(1), and O(n) for the headers of an answer that a server has sent.
    public var fields: [Field] { wire?.all ?? made }

    /// Makes headers of fields.
    public init(_ fields: [Field] = []) { made = fields }

    /// Makes headers of names and values.
    public init(dictionaryLiteral elements: (String, String)...) {
      made = elements.map { Field($0.0, $0.1) }
    }

    /// Makes headers of what a server has sent.
    init(_ wire: WireFields) {
      self.wire = wire
      made = []
    }

    /// Whether both have the same fields in the same order.
    public static func == (left: Headers, right: Headers) -> Bool { left.fields == right.fields }

    /// Hashes the fields.
    public func hash(into hasher: inout Hasher) { hasher.combine(fields) }

    /// Makes the fields strings, before one is changed.
    private mutating func make() {
      guard let wire else { return }
      made = wire.all
      self.wire = nil
    }

    /// The first value of a name; setting it replaces all of them, and nil removes them.
    ///
    /// - Complexity: O(n).
    public subscript(name: String) -> String? {
      get {
        if let wire { return wire.first(name) }
        for index in made.indices where Headers.isSame(made[index].name, name) { return made[index].value }
        return nil
      }
      set {
        make()
        made.removeAll { Headers.isSame($0.name, name) }
        if let newValue { made.append(Field(name, newValue)) }
      }
    }

    /// All values of a name, in their order.
    ///
    /// - Complexity: O(n).
    public func values(of name: String) -> [String] {
      if let wire { return wire.values(of: name) }
      var values: [String] = []
      for index in made.indices where Headers.isSame(made[index].name, name) { values.append(made[index].value) }
      return values
    }

    /// Adds a field at the end.
    public mutating func add(_ name: String, _ value: String) { add(Field(name, value)) }

    mutating func add(_ field: Field) {
      make()
      made.append(field)
    }

    var isEmpty: Bool { wire?.isEmpty ?? made.isEmpty }

    /// The elements of the lists that a name's values are, in their order.
    func list(of name: String) -> [String] {
      let values = values(of: name)
      return values.isEmpty
        ? [] : values.flatMap { $0.split(separator: ",") }.map { trimmed($0) }.filter { !$0.isEmpty }
    }

    /// The content codings in lower case, in the order in which they were applied.
    var codings: [String] { list(of: "Content-Encoding").map { $0.lowercased() }.filter { $0 != "identity" } }

    mutating func removeAll(of names: String...) {
      make()
      made.removeAll { field in names.contains { Headers.isSame(field.name, $0) } }
    }

    /// Whether two names are the same but for the case of their letters.
    static func isSame(_ left: String, _ right: String) -> Bool {
      guard left.utf8.count == right.utf8.count else { return false }
      // Most are written alike, which a comparison of words finds.
      if left == right { return true }
      var other = right.utf8.makeIterator()
      for byte in left.utf8 {
        guard let twin = other.next(), lower(byte) == lower(twin) else { return false }
      }
      return true
    }

    static func lower(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }

    /// Whether a name consists of the characters of a token, and there are any.
    static func isToken(_ name: some Collection<UInt8>) -> Bool {
      !name.isEmpty && name.allSatisfy(isTokenByte)
    }

    /// Whether a text can be sent as the value of a field: it has no control character but tabs.
    static func isValue(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 } }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
      guard byte < 128 else { return false }
      return (byte < 64 ? lowTokens : highTokens) >> UInt64(byte & 63) & 1 != 0
    }

    // The digits and ! # $ % & ' * + - . and the letters and ^ _ ` | ~, one bit for each.
    private static var lowTokens: UInt64 { 0x03ff_6cfa_0000_0000 }
    private static var highTokens: UInt64 { 0x57ff_ffff_c7ff_fffe }
  }
}

/// A text without the spaces and tabs at its ends.
func trimmed(_ text: Substring) -> String {
  var bytes = text.utf8
  while let first = bytes.first, first == 32 || first == 9 { bytes.removeFirst() }
  while let last = bytes.last, last == 32 || last == 9 { bytes.removeLast() }
  return String(Substring(bytes))
}

/// Bytes without the spaces and tabs at their ends.
func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  var (start, end) = (0, bytes.count)
  while start < end, bytes[start] == 32 || bytes[start] == 9 { start += 1 }
  while start < end, bytes[end - 1] == 32 || bytes[end - 1] == 9 { end -= 1 }
  return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
}
