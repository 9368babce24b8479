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

    /// The fields in their order.
    public private(set) var fields: [Field]

    /// Makes headers of fields.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// Makes headers of names and values.
    public init(dictionaryLiteral elements: (String, String)...) {
      fields = elements.map { Field($0.0, $0.1) }
    }

    /// The first value of a name; setting it replaces all of them, and nil removes them.
    ///
    /// - Complexity: O(n).
    public subscript(name: String) -> String? {
      get { fields.first { Headers.isSame($0.name, name) }?.value }
      set {
        fields.removeAll { Headers.isSame($0.name, name) }
        if let newValue { fields.append(Field(name, newValue)) }
      }
    }

    /// All values of a name, in their order.
    ///
    /// - Complexity: O(n).
    public func values(of name: String) -> [String] {
      fields.filter { Headers.isSame($0.name, name) }.map(\.value)
    }

    /// Adds a field behind the others.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// The elements of the lists that a name's values are, in their order.
    func list(of name: String) -> [String] {
      values(of: name).flatMap { $0.split(separator: ",") }.map { trimmed($0) }.filter { !$0.isEmpty }
    }

    mutating func removeAll(of names: String...) {
      fields.removeAll { field in names.contains { Headers.isSame(field.name, $0) } }
    }

    /// Whether two names are the same but for the case of their letters.
    static func isSame(_ left: String, _ right: String) -> Bool {
      let (left, right) = (left.utf8, right.utf8)
      guard left.count == right.count else { return false }
      return zip(left, right).allSatisfy { lower($0) == lower($1) }
    }

    private static func lower(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 32 : byte }

    /// Whether a name consists of the characters of a token, and there are any.
    static func isToken(_ name: some Collection<UInt8>) -> Bool {
      !name.isEmpty && name.allSatisfy(isTokenByte)
    }

    /// Whether a text can be sent as the value of a field: it has no control character but tabs.
    static func isValue(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 } }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
      switch byte {
      case 48...57, 65...90, 97...122: true
      // ! # $ % & ' * + - . ^ _ ` | ~
      case 33, 35, 36, 37, 38, 39, 42, 43, 45, 46, 94, 95, 96, 124, 126: true
      default: false
      }
    }
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
func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
  var bytes = bytes
  while let first = bytes.first, first == 32 || first == 9 { bytes.removeFirst() }
  while let last = bytes.last, last == 32 || last == 9 { bytes.removeLast() }
  return bytes
}
