// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopCore
import Testing
import TestSupport

@testable import RunLoopPorts

/// Certificates and keys of every kind, made by `openssl` when the first test asks for one.
enum TLSFiles {
  /// Why there are none, for tests to be left out; nil where there are.
  static let isAvailable = FileManager.default.isExecutableFile(atPath: openssl) && (try? TLSLibrary.open()) != nil

  static let openssl = "/usr/bin/openssl"

  /// The directory; it goes with the process.
  static let directory: String = {
    var template = Array("/tmp/run-loop-tls-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("no directory for certificates: \(errno)") }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script]
    process.currentDirectoryURL = URL(fileURLWithPath: path)
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    do { try process.run() } catch { fatalError("\(error)") }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { fatalError("no certificates were made: \(text)") }
    atexit { try? FileManager.default.removeItem(atPath: TLSFiles.directory) }
    return path
  }()

  static func path(_ name: String) -> String { "\(directory)/\(name)" }

  static func identity(_ name: String) -> TLSIdentity {
    TLSIdentity(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"))
  }

  static func text(_ name: String) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path(name)) else { fatalError("no file \(name)") }
    return Array(data)
  }

  /// The pin of a certificate's key.
  static func pin(_ name: String) -> String {
    String(decoding: text("\(name).pin"), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static let script = """
    set -e
    key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }
    # A root: its name, and the days for which it is valid.
    root() {
      key $1
      openssl req -new -x509 -key $1.key -subj "/CN=$1" -days 30 -out $1.pem \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
    }
    root ca; root other
    cat >ca.cnf <<END
    [ca]
    default_ca = own
    [own]
    database = index
    rand_serial = yes
    new_certs_dir = .
    default_md = sha256
    policy = any
    copy_extensions = copy
    unique_subject = no
    [any]
    commonName = optional
    END
    touch index
    # A certificate: its name, its issuer, its extensions, its first and last moment.
    leaf() {
      [ -f $1.key ] || key $1
      openssl req -new -key $1.key -subj "/CN=$1" -addext "$3" ${6:+-addext "$6"} -out $1.csr
      openssl ca -batch -notext -config ca.cnf -cert $2.pem -keyfile $2.key -in $1.csr -out $1.pem \
        -startdate $4 -enddate $5
    }
    now=$(date -u +%Y%m%d%H%M%SZ -d '1 hour ago')
    later=$(date -u +%Y%m%d%H%M%SZ -d '30 days')
    names=subjectAltName=DNS:localhost,DNS:a.example,DNS:*.wild.example,IP:127.0.0.1,IP:::1
    leaf server ca "$names" $now $later
    leaf client ca subjectAltName=DNS:client $now $later extendedKeyUsage=clientAuth
    leaf second ca subjectAltName=DNS:b.example,DNS:*.b.example $now $later
    leaf expired ca "$names" 20200101000000Z 20210101000000Z
    leaf future ca "$names" 20900101000000Z 20910101000000Z
    leaf elsewhere ca subjectAltName=DNS:elsewhere.example $now $later
    leaf onlycommon ca subjectAltName=email:a@a.example $now $later
    leaf unknown other "$names" $now $later
    leaf usage ca "$names" $now $later extendedKeyUsage=clientAuth
    leaf wide ca subjectAltName=DNS:*.example,DNS:*,DNS:w*.example.org $now $later
    openssl genrsa -out rsa.key 2048
    leaf rsa ca "$names" $now $later
    openssl genrsa -out weak.key 1024
    leaf weak ca "$names" $now $later
    key self
    openssl req -new -x509 -key self.key -subj /CN=self -days 30 -addext "$names" -out self.pem
    # An issuer between: the server shows it, or does not.
    key between
    openssl req -new -key between.key -subj /CN=between -addext basicConstraints=critical,CA:TRUE -out between.csr
    openssl ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key -in between.csr -out between.pem \
      -startdate $now -enddate $later
    leaf below between "$names" $now $later
    cp below.key chain.key
    cat below.pem between.pem >chain.pem
    openssl ec -in server.key -aes128 -passout pass:sesame -out locked.key
    cp server.pem locked.pem
    for name in server ca self; do
      openssl x509 -in $name.pem -noout -pubkey | openssl pkey -pubin -outform DER |
        openssl dgst -sha256 -binary | base64 >$name.pin
    done
    """
}

extension TLSContext {
  /// A context for clients that trust the tests' root.
  static func client(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
    var configuration = TLSConfiguration()
    configuration.roots = [.file(TLSFiles.path("ca.pem"))]
    change(&configuration)
    return try TLSContext(configuration)
  }

  /// A context for a server with a certificate of the tests.
  static func server(
    _ name: String = "server", _ change: (inout TLSServerConfiguration) -> Void = { _ in }
  ) throws -> TLSContext {
    var configuration = TLSServerConfiguration(identity: TLSFiles.identity(name))
    change(&configuration)
    return try TLSContext(configuration)
  }
}

/// Both ends of a secured connection in memory.
final class TLSEnds {
  let client: TLSSession
  let server: TLSSession
  /// What has come to either end.
  var clientGot: [UInt8] = []
  var serverGot: [UInt8] = []
  /// How many bytes are moved at a time, and how much room there is for plain bytes.
  var chunk = 64 * 1024
  var room = 64 * 1024
  /// What is done to bytes on their way to the server.
  var change: ([UInt8]) -> [UInt8] = { $0 }

  init(_ client: TLSContext, _ server: TLSContext, name: String? = "localhost") throws {
    self.client = try TLSSession(client, serverName: name)
    self.server = try TLSSession(server)
    self.client.start()
    self.server.start()
  }

  /// Moves bytes until there are none.
  func run() {
    while client.hasOutput || server.hasOutput {
      serverGot += move(from: client, to: server, change)
      clientGot += move(from: server, to: client) { $0 }
    }
  }

  private func move(from: TLSSession, to: TLSSession, _ change: ([UInt8]) -> [UInt8]) -> [UInt8] {
    let bytes = change(from.withOutput { Array($0.prefix(chunk)) })
    from.sent(min(from.outputCount, chunk))
    return give(bytes, to: to)
  }

  /// Gives bytes to an end, and takes what comes out.
  func give(_ bytes: [UInt8], to session: TLSSession) -> [UInt8] {
    var plain = [UInt8](repeating: 0, count: room)
    let count = bytes.withUnsafeBytes { bytes in plain.withUnsafeMutableBytes { session.receive(bytes, into: $0) } }
    var result = Array(plain[..<count])
    while session.plain.count > 0 {
      let count = plain.withUnsafeMutableBytes { session.takePlain(into: $0) }
      result += plain[..<count]
    }
    return result
  }

  /// Writes and moves until the other end has it.
  func write(_ bytes: [UInt8], from session: TLSSession) {
    var rest = bytes[...]
    while !rest.isEmpty, session.state.writes {
      rest = rest.dropFirst(rest.withUnsafeBytes { session.write($0) })
      run()
    }
  }

  /// How both ends have failed, in a word each.
  var outcome: String { "\(word(client)) \(word(server))" }

  private func word(_ session: TLSSession) -> String {
    switch session.state.phase {
    case .handshaking: "handshaking"
    case .open: session.state.hasEnded ? "ended" : "open"
    case .failed(let cause): cause.word
    }
  }
}

extension TLSError.Cause {
  /// The cause in a word.
  var word: String {
    switch self {
    case .rejectedByPeer(let alert): "alert\(alert.number)"
    case .protocolViolation: "violation"
    case .badCertificate: "badCertificate"
    case .badKey: "badKey"
    case .keyMismatch: "keyMismatch"
    case .weak: "weak"
    default: "\(self)"
    }
  }
}

/// What a failure of TLS is, in a word.
func tlsFailure(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch let error as TLSError {
    return error.cause.word
  } catch SocketError.tls(let error) {
    return error.cause.word
  } catch {
    return "\(error)"
  }
}
