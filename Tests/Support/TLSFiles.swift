// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Certificates and keys of every kind, created by `openssl` on first use.
package enum TLSFiles {
  /// Whether `openssl` is installed.
  package static let canBeMade = FileManager.default.isExecutableFile(atPath: openssl)

  package static let openssl = "/usr/bin/openssl"

  /// The directory of the files, removed when the process ends.
  package static let directory: String = {
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
    do { try process.start() } catch { fatalError("\(error)") }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { fatalError("no certificates were made: \(text)") }
    atexit { try? FileManager.default.removeItem(atPath: TLSFiles.directory) }
    return path
  }()

  package static func path(_ name: String) -> String { "\(directory)/\(name)" }

  package static func text(_ name: String) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path(name)) else { fatalError("no file \(name)") }
    return Array(data)
  }

  /// Returns the pin of a certificate's key.
  package static func pin(_ name: String) -> String {
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
    # A directory of roots as a system has it: the first is found by its name, the other stands in the file.
    mkdir system
    cp ca.pem system/$(openssl x509 -noout -hash -in ca.pem).0
    cp other.pem system/ca-certificates.crt
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
