// SPDX-License-Identifier: Apache-2.0

extension HTTP {
  /// The headers of a request or a response, in order.
  ///
  /// Names are compared case-insensitively. A name may occur more than once.
  public struct Headers: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// A header field.
    public struct Field: Hashable, Sendable {
      /// The name in its original case.
      public let name: String
      /// The value, without leading and trailing whitespace.
      public let value: String

      /// Creates a field.
      public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
      }
    }

    /// The headers as received, until they are first modified; `made` is empty until then.
    private var wire: WireFields?
    private var made: [Field]

    /// The fields in order.
    ///
    /// - Complexity: O(1), or O(n) for the headers of a received response.
    public var fields: [Field] { wire?.all ?? made }

    /// Creates headers from fields.
    public init(_ fields: [Field] = []) { made = fields }

    /// Creates headers from names and values.
    public init(dictionaryLiteral elements: (String, String)...) {
      made = elements.map { Field($0.0, $0.1) }
    }

    init(_ wire: WireFields) {
      self.wire = wire
      made = []
    }

    /// Returns whether both have the same fields in the same order.
    public static func == (left: Headers, right: Headers) -> Bool { left.fields == right.fields }

    /// Hashes the fields.
    public func hash(into hasher: inout Hasher) { hasher.combine(fields) }

    /// Converts received headers to strings, which is required before a modification.
    private mutating func make() {
      guard let wire else { return }
      made = wire.all
      self.wire = nil
    }

    /// The first value of a name; setting it replaces all values, and setting nil removes them.
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

    /// Returns all values of a name in order.
    ///
    /// - Complexity: O(n).
    public func values(of name: String) -> [String] {
      if let wire { return wire.values(of: name) }
      var values: [String] = []
      for index in made.indices where Headers.isSame(made[index].name, name) { values.append(made[index].value) }
      return values
    }

    /// The first value of a name as a URL reference, in which bytes that are not UTF-8 are percent-encoded.
    func reference(of name: String) -> String? { wire.map { $0.firstReference(name) } ?? self[name] }

    /// Adds a field at the end.
    public mutating func add(_ name: String, _ value: String) { add(Field(name, value)) }

    mutating func add(_ field: Field) {
      make()
      made.append(field)
    }

    var isEmpty: Bool { wire?.isEmpty ?? made.isEmpty }

    /// The elements of a comma-separated header, in order, over all its values.
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

    /// Returns whether two names are equal, ignoring case.
    static func isSame(_ left: String, _ right: String) -> Bool {
      guard left.utf8.count == right.utf8.count else { return false }
      // Most names have the same case, for which `==` is fast.
      if left == right { return true }
      var other = right.utf8.makeIterator()
      for byte in left.utf8 {
        guard let twin = other.next(), lower(byte) == lower(twin) else { return false }
      }
      return true
    }

    static func lower(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }

    /// Whether a name is a valid token, which is not empty.
    static func isToken(_ name: some Collection<UInt8>) -> Bool {
      !name.isEmpty && name.allSatisfy(isTokenByte)
    }

    /// Whether a text is a valid header value: tabs are the only control characters allowed.
    static func isValue(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 } }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
      guard byte < 128 else { return false }
      return (byte < 64 ? lowTokens : highTokens) >> UInt64(byte & 63) & 1 != 0
    }

    // One bit for each token character: digits and ! # $ % & ' * + - . below 64, letters and ^ _ ` | ~ above.
    private static var lowTokens: UInt64 { 0x03ff_6cfa_0000_0000 }
    private static var highTokens: UInt64 { 0x57ff_ffff_c7ff_fffe }
  }
}

/// Returns a text without leading and trailing spaces and tabs.
func trimmed(_ text: Substring) -> String {
  var bytes = text.utf8
  while let first = bytes.first, first == 32 || first == 9 { bytes.removeFirst() }
  while let last = bytes.last, last == 32 || last == 9 { bytes.removeLast() }
  return String(Substring(bytes))
}

/// Returns bytes without leading and trailing spaces and tabs.
func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  var (start, end) = (0, bytes.count)
  while start < end, bytes[start] == 32 || bytes[start] == 9 { start += 1 }
  while start < end, bytes[end - 1] == 32 || bytes[end - 1] == 9 { end -= 1 }
  return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
}
