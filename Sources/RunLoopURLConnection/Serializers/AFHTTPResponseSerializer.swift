// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// The domain of errors for responses that are unacceptable or cannot be parsed.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"
/// The `userInfo` key for the response.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"
/// The `userInfo` key for the response's body.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

/// Parses a response.
///
/// An operation's serializer is an ``AFHTTPResponseSerializer``, as in AFNetworking, so a custom serializer is a
/// subclass of it. Other serializers can be members of an ``AFCompoundResponseSerializer``.
public protocol AFURLResponseSerialization: AnyObject, Sendable {
  /// Returns the parsed body; nil for an empty body.
  ///
  /// It is called on a dispatch queue after the end of the request.
  ///
  /// - Throws: An error if the response is unacceptable or its body cannot be parsed.
  func responseObject(for response: URLResponse?, data: Data?) throws -> Any?
}

/// Validates a response's status and type, and returns the body unchanged.
///
/// This is the class of the same name in AFNetworking 2.
open class AFHTTPResponseSerializer: AFURLResponseSerialization, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// The acceptable status codes, 200 to 299 by default; nil accepts all.
  open var acceptableStatusCodes: IndexSet? = IndexSet(200..<300)
  /// The acceptable content types; nil, the default, accepts all.
  open var acceptableContentTypes: Set<String>?
  /// The encoding of texts whose response specifies none; the default is UTF-8.
  open var stringEncoding = String.Encoding.utf8

  /// Creates a serializer that accepts any body with a status of success.
  public init() {}

  /// Throws an error if a response is unacceptable.
  ///
  /// An empty body may have any type.
  ///
  /// - Throws: An error of ``AFURLResponseSerializationErrorDomain`` with the code `NSURLErrorBadServerResponse` for
  ///   the status, or `NSURLErrorCannotDecodeContentData` for the type. If both are unacceptable, the latter is the
  ///   underlying error of the former.
  open func validateResponse(_ response: HTTPURLResponse?, data: Data?) throws {
    guard let response else { return }
    var found: NSError?
    // Foundation keeps a space before the parameters.
    let type = (response.mimeType ?? "application/octet-stream").trimmingCharacters(in: .whitespaces)
    if let acceptableContentTypes, let data, !data.isEmpty, !acceptableContentTypes.contains(type.lowercased()) {
      found = failure(.cannotDecodeContentData, "the body's type is \(type)", response, data)
    }
    if let acceptableStatusCodes, !acceptableStatusCodes.contains(response.statusCode) {
      found = failure(
        .badServerResponse, "the server has answered with the status \(response.statusCode)", response, data, found)
    }
    if let found { throw found }
  }

  /// Returns the body unchanged after ``AFHTTPResponseSerializer/validateResponse(_:data:)``.
  ///
  /// Subclasses override this method to parse the body.
  ///
  /// - Parameters:
  ///   - response: The response.
  ///   - data: The body.
  /// - Throws: The errors of ``AFHTTPResponseSerializer/validateResponse(_:data:)``.
  open func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try validateResponse(response as? HTTPURLResponse, data: data) { data }
    return data
  }

  /// Parses the body of a response, or returns nil if it is empty or the single space that Rails sends.
  ///
  /// If the status is unacceptable, the parsed body is stored for ``Serialized``.
  func read(_ response: URLResponse?, _ data: Data?, _ read: (Data) throws -> Any?) throws -> Any? {
    func object() throws -> Any? {
      guard let data, !data.isEmpty, data != Data(" ".utf8) else { return nil }
      return try read(data)
    }
    try validateResponse(response as? HTTPURLResponse, data: data, object)
    return try object()
  }

  /// Throws if a response is unacceptable, and stores the parsed body, unless the type is unacceptable.
  ///
  /// The error is passed on unchanged, because an override may throw one of its own.
  private func validateResponse(_ response: HTTPURLResponse?, data: Data?, _ object: () throws -> Any?) throws {
    do {
      try validateResponse(response, data: data)
    } catch {
      let failure = error as NSError
      let isAboutType = [failure, failure.userInfo[NSUnderlyingErrorKey] as? NSError].contains {
        $0?.domain == AFURLResponseSerializationErrorDomain && $0?.code == URLError.cannotDecodeContentData.rawValue
      }
      if !isAboutType, let rejected = Serialized.Rejected.current { rejected.object = try? object() }
      throw error
    }
  }

  func failure(
    _ code: URLError.Code, _ text: String, _ response: URLResponse?, _ data: Data?, _ cause: (any Error)? = nil
  ) -> NSError {
    var userInfo: [String: Any] = [NSLocalizedDescriptionKey: text]
    userInfo[NSURLErrorFailingURLErrorKey] = response?.url
    userInfo[AFNetworkingOperationFailingURLResponseErrorKey] = response
    userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
    userInfo[NSUnderlyingErrorKey] = cause
    return NSError(domain: AFURLResponseSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
  }
}

/// The result of a serializer: an object, an error, or both.
struct Serialized {
  var object: Any?
  /// The reason the response is unacceptable or its body cannot be parsed.
  var error: (any Error)?

  init() {}

  /// Calls a serializer.
  ///
  /// An ``AFHTTPResponseSerializer`` that throws because of the status may still produce an object.
  init(by serializer: any AFURLResponseSerialization, _ response: URLResponse?, _ data: Data?) {
    let rejected = Rejected()
    do {
      object = try Rejected.$current.withValue(rejected) { try serializer.responseObject(for: response, data: data) }
    } catch {
      object = rejected.object
      self.error = error
    }
  }

  /// Transports the parsed body of an unacceptable response.
  ///
  /// It cannot be part of the error, because an error thrown by the program is passed on unchanged.
  final class Rejected: @unchecked Sendable {
    // Sendable: used within a single call, on its thread.
    @TaskLocal static var current: Rejected?
    var object: Any?
  }
}

/// Parses JSON.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// The options for reading JSON; empty by default.
  open var readingOptions: JSONSerialization.ReadingOptions = []
  /// Whether to remove keys whose values are null; the default is `false`.
  open var removesKeysWithNullValues = false

  /// Creates a serializer for `application/json`, `text/json` and `text/javascript`.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/json", "text/json", "text/javascript"]
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try read(response, data) { body in
      let encoding = TextEncoding(response?.textEncodingName, orElse: stringEncoding)
      // Other encodings are converted to UTF-8; the JSON parser recognizes UTF-16 and UTF-32.
      guard let text = encoding.isUnicode ? body : encoding.text(body).map({ Data($0.utf8) }) else {
        throw failure(.cannotDecodeContentData, "the body is no text of \(encoding)", response, data)
      }
      do {
        let object = try JSONSerialization.jsonObject(with: text, options: readingOptions)
        return removesKeysWithNullValues ? withoutNulls(object) : object
      } catch {
        throw failure(.cannotDecodeContentData, "the body is not JSON", response, data, error)
      }
    }
  }

  private func withoutNulls(_ object: Any) -> Any {
    switch object {
    case let dictionary as [String: Any]: dictionary.filter { !($0.value is NSNull) }.mapValues(withoutNulls)
    case let array as [Any]: array.map(withoutNulls)
    default: object
    }
  }
}

/// Parses property lists.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: the program sets the properties before it makes requests.

  /// Creates a serializer for `application/x-plist`.
  public override init() {
    super.init()
    acceptableContentTypes = ["application/x-plist"]
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    try read(response, data) { body in
      do {
        return try PropertyListSerialization.propertyList(from: body, format: nil)
      } catch {
        throw failure(.cannotDecodeContentData, "the body is not a property list", response, data, error)
      }
    }
  }
}

/// Tries several serializers in order, and uses the first that can parse a response.
open class AFCompoundResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  // Sendable: the list does not change.

  /// The serializers, in order.
  public let responseSerializers: [any AFURLResponseSerialization]

  /// Creates a serializer from others; if none of them can parse a response, the body is returned unchanged.
  public init(compoundWith serializers: [any AFURLResponseSerialization]) {
    responseSerializers = serializers
    super.init()
  }

  open override func responseObject(for response: URLResponse?, data: Data?) throws -> Any? {
    for serializer in responseSerializers {
      let serialized = Serialized(by: serializer, response, data)
      guard let object = serialized.object else { continue }
      guard let error = serialized.error else { return object }
      // The serializer can parse the body although the status is unacceptable.
      Serialized.Rejected.current?.object = object
      throw error
    }
    return try super.responseObject(for: response, data: data)
  }
}
