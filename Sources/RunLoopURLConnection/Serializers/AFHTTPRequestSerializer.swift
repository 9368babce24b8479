// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import FoundationNetworking

/// Makes requests of parameters.
public protocol AFURLRequestSerialization: AnyObject {
  /// The request with the parameters in it.
  ///
  /// - Throws: Why they cannot be written.
  func requestBySerializingRequest(_ request: URLRequest, withParameters parameters: Any?) throws -> URLRequest
}

/// Writes parameters as those of a form: into the address, or as the body.
///
/// It is AFNetworking 2's class of this name.
open class AFHTTPRequestSerializer: AFURLRequestSerialization, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// The encoding of bodies.
  open var stringEncoding = String.Encoding.utf8
  /// How many seconds nothing may arrive or be sent.
  open var timeoutInterval: TimeInterval = 60
  /// Whether cookies are stored and sent.
  open var httpShouldHandleCookies = true
  /// The methods whose parameters are written into the address.
  open var httpMethodsEncodingParametersInURI: Set<String> = ["GET", "HEAD", "DELETE"]
  /// The fields that each request has unless it has its own.
  open private(set) var httpRequestHeaders: [String: String] = [:]
  private var queryString: ((URLRequest, Any) throws -> String)?

  /// Makes a serializer whose requests name the user's languages and the program.
  public init() {
    let languages = Locale.preferredLanguages.prefix(6).enumerated().map { index, language in
      index == 0 ? language : "\(language);q=0.\(10 - index)"
    }
    if !languages.isEmpty { setValue(languages.joined(separator: ", "), forHTTPHeaderField: "Accept-Language") }
    setValue(ProcessInfo.processInfo.processName, forHTTPHeaderField: "User-Agent")
  }

  /// Sets a field of all requests; nil removes it.
  open func setValue(_ value: String?, forHTTPHeaderField field: String) { httpRequestHeaders[field] = value }

  /// The field that all requests have.
  open func value(forHTTPHeaderField field: String) -> String? { httpRequestHeaders[field] }

  /// Sends a name and a password with each request, by Basic.
  open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
    setValue("Basic " + Data("\(username):\(password)".utf8).base64EncodedString(), forHTTPHeaderField: "Authorization")
  }

  /// Sends no credential any more.
  open func clearAuthorizationHeader() { setValue(nil, forHTTPHeaderField: "Authorization") }

  /// Lets a block write the parameters; nil: they are written as usual.
  open func setQueryStringSerializationWithBlock(_ block: ((URLRequest, Any) throws -> String)?) {
    queryString = block
  }

  /// A request with parameters.
  ///
  /// - Throws: `URLError.badURL`, or why the parameters cannot be written.
  open func request(withMethod method: String, urlString: String, parameters: Any?) throws -> URLRequest {
    guard let url = URL(string: urlString), url.scheme != nil else {
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: "\(urlString) is not an absolute address"])
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.timeoutInterval = timeoutInterval
    request.httpShouldHandleCookies = httpShouldHandleCookies
    return try requestBySerializingRequest(request, withParameters: parameters)
  }

  /// A request whose body is a form with several parts, files among them, which are read as they are sent.
  ///
  /// - Parameters:
  ///   - method: Not `GET` or `HEAD`, which have no body.
  ///   - urlString: The absolute address.
  ///   - parameters: The first parts.
  ///   - block: Called at once, to add parts.
  /// - Throws: `URLError.badURL`, or what the block throws.
  open func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: Any?,
    constructingBodyWith block: (any AFMultipartFormData) throws -> Void
  ) throws -> URLRequest {
    guard method != "GET", method != "HEAD" else {
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: "a request of the method \(method) has no body"])
    }
    var request = try request(withMethod: method, urlString: urlString, parameters: nil)
    let form = MultipartForm(stringEncoding)
    for pair in QueryPair.pairs(of: parameters) {
      form.appendPart(withForm: pair.value.data(using: stringEncoding) ?? Data(), name: pair.name)
    }
    try block(form)
    let stream = form.stream()
    request.setValue("multipart/form-data; boundary=\(form.boundary)", forHTTPHeaderField: "Content-Type")
    request.setValue(stream.length.map { String($0) }, forHTTPHeaderField: "Content-Length")
    request.httpBodyStream = stream
    return request
  }

  /// Returns a request with the serializer's fields and its parameters, as those of a form.
  ///
  /// They are written into the address for ``AFHTTPRequestSerializer/httpMethodsEncodingParametersInURI``, and are the
  /// body otherwise.
  ///
  /// - Parameters:
  ///   - request: The request; its own fields stay.
  ///   - parameters: A dictionary, array or set, or nil for none.
  /// - Throws: What the block of ``AFHTTPRequestSerializer/setQueryStringSerializationWithBlock(_:)`` throws, or
  ///   `URLError.badURL`.
  open func requestBySerializingRequest(_ request: URLRequest, withParameters parameters: Any?) throws -> URLRequest {
    var request = withHeaders(request)
    guard let parameters else { return request }
    let query = try queryString?(request, parameters) ?? QueryPair.text(of: parameters)
    guard !query.isEmpty else { return request }
    if encodesInURI(request) {
      guard let url = request.url else { throw URLError(.badURL) }
      let text = url.absoluteString
      let parts = text.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let joined = "\(parts[0])\(url.query == nil ? "?" : "&")\(query)" + (parts.count > 1 ? "#\(parts[1])" : "")
      guard let extended = URL(string: joined) else { throw URLError(.badURL) }
      request.url = extended
    } else {
      if request.value(forHTTPHeaderField: "Content-Type") == nil {
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
      }
      request.httpBody = query.data(using: stringEncoding)
    }
    return request
  }

  /// Whether a request's parameters are written into its address.
  func encodesInURI(_ request: URLRequest) -> Bool {
    httpMethodsEncodingParametersInURI.contains((request.httpMethod ?? "GET").uppercased())
  }

  /// The request with the fields of all requests.
  func withHeaders(_ request: URLRequest) -> URLRequest {
    var request = request
    for (name, value) in httpRequestHeaders where request.value(forHTTPHeaderField: name) == nil {
      request.setValue(value, forHTTPHeaderField: name)
    }
    return request
  }
}

/// Writes parameters as JSON, as the body.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// How JSON is written.
  open var writingOptions: JSONSerialization.WritingOptions = []

  open override func requestBySerializingRequest(
    _ request: URLRequest, withParameters parameters: Any?
  ) throws -> URLRequest {
    guard !encodesInURI(request) else {
      return try super.requestBySerializingRequest(request, withParameters: parameters)
    }
    var request = withHeaders(request)
    guard let parameters else { return request }
    // What is no JSON would end the program.
    guard JSONSerialization.isValidJSONObject(parameters) else {
      throw CocoaError(
        .propertyListWriteInvalid, userInfo: [NSLocalizedDescriptionKey: "the parameters cannot be written as JSON"])
    }
    request.httpBody = try JSONSerialization.data(withJSONObject: parameters, options: writingOptions)
    if request.value(forHTTPHeaderField: "Content-Type") == nil {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    return request
  }
}

/// Writes parameters as a property list, as the body.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  // Sendable: what the program sets, it sets before it makes requests.

  /// Which format is written.
  open var format = PropertyListSerialization.PropertyListFormat.xml

  open override func requestBySerializingRequest(
    _ request: URLRequest, withParameters parameters: Any?
  ) throws -> URLRequest {
    guard !encodesInURI(request) else {
      return try super.requestBySerializingRequest(request, withParameters: parameters)
    }
    var request = withHeaders(request)
    guard let parameters else { return request }
    guard PropertyListSerialization.propertyList(parameters, isValidFor: format) else {
      throw CocoaError(
        .propertyListWriteInvalid,
        userInfo: [NSLocalizedDescriptionKey: "the parameters cannot be written as a property list"])
    }
    request.httpBody = try PropertyListSerialization.data(fromPropertyList: parameters, format: format, options: 0)
    if request.value(forHTTPHeaderField: "Content-Type") == nil {
      request.setValue("application/x-plist", forHTTPHeaderField: "Content-Type")
    }
    return request
  }
}
