#!/usr/bin/env bash
# Makes the certificates of the TLS checks in the folder that is named: an authority, a server for 127.0.0.1, and the clients alice
# and bob, in PEM, PKCS12 and JKS, with openssl and keytool as in docs/operations.md. The password of all stores is "changeit"; the
# key in NAME.pem has none, since Java cannot read what openssl encrypts, that in NAME.encrypted.pem has it, too.
set -euo pipefail
cd "$1"

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Interop CA" -keyout ca.key -out ca.pem 2>openssl.log

# issue NAME SUBJECT ALTERNATIVE-NAMES
issue() {
  openssl req -newkey rsa:2048 -nodes -utf8 -subj "$2" -keyout "$1.key" -out "$1.csr" 2>>openssl.log
  printf 'subjectAltName=%s\n' "$3" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.crt" 2>>openssl.log
  cat "$1.crt" "$1.key" >"$1.pem"
  openssl pkcs8 -topk8 -in "$1.key" -passout pass:changeit | cat "$1.crt" - >"$1.encrypted.pem"
  openssl pkcs12 -export -in "$1.crt" -inkey "$1.key" -certfile ca.pem -name "$1" -passout pass:changeit -out "$1.p12"
  keytool -importkeystore -noprompt -srckeystore "$1.p12" -srcstoretype PKCS12 -srcstorepass changeit \
    -destkeystore "$1.jks" -deststoretype JKS -deststorepass changeit >>keytool.log 2>&1
}

issue server "/CN=server" "IP:127.0.0.1,DNS:localhost"
issue alice "/C=DE/O=Example, \"Inc\"/OU=A\\+B=C/emailAddress=a@b.example/CN=Älice <1>;#" "DNS:alice.example"
issue bob "/CN=bob" "DNS:bob.example"
keytool -importcert -noprompt -alias ca -file ca.pem -keystore trust.p12 -storetype PKCS12 -storepass changeit >>keytool.log 2>&1
printf 'changeit\n' >password
