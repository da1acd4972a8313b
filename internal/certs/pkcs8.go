package certs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

// Encrypted keys as openssl pkcs8 -topk8 writes them: PBES2 of RFC 8018 with PBKDF2, and AES or triple DES in CBC mode.

type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2Params struct {
	KDF    pkix.AlgorithmIdentifier
	Cipher pkix.AlgorithmIdentifier
}

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyBytes   int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// hashes are the hashes of PBKDF2 by their object identifier; without one it is SHA-1.
var hashes = map[string]func() hash.Hash{
	"": sha1.New, "1.2.840.113549.2.7": sha1.New,
	"1.2.840.113549.2.8": sha256.New224, "1.2.840.113549.2.9": sha256.New,
	"1.2.840.113549.2.10": sha512.New384, "1.2.840.113549.2.11": sha512.New,
}

// blockCipher is a cipher that a key may be encrypted with.
type blockCipher struct {
	keyBytes int
	block    func(key []byte) (cipher.Block, error)
}

var ciphers = map[string]blockCipher{
	"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
	"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
	"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
}

var (
	errPassword  = errors.New("the password is wrong")
	errNoKeyPass = errors.New("it is encrypted and no password is given")
	errKeyForm   = errors.New("it is encrypted in a way that is not supported; convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc")
)

// decryptKey opens an encrypted key in PKCS#8.
func decryptKey(der []byte, password string) (any, error) {
	if password == "" {
		return nil, errNoKeyPass
	}
	var enc encryptedKey
	var scheme pbes2Params
	var kdf pbkdf2Params
	if err := unmarshal(der, &enc); err != nil {
		return nil, err
	}
	if !enc.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errKeyForm
	}
	if err := unmarshal(enc.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, err
	}
	if !scheme.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, errKeyForm
	}
	if err := unmarshal(scheme.KDF.Parameters.FullBytes, &kdf); err != nil {
		return nil, err
	}
	newHash, known := hashes[kdf.PRF.Algorithm.String()]
	c, knownCipher := ciphers[scheme.Cipher.Algorithm.String()]
	if !known || !knownCipher || kdf.KeyBytes != 0 && kdf.KeyBytes != c.keyBytes {
		return nil, errKeyForm
	}
	if kdf.Iterations < 1 || kdf.Iterations > iterationsMax {
		return nil, fmt.Errorf("its password is to be hashed %d times; at most %d are allowed", kdf.Iterations, iterationsMax)
	}
	key, err := pbkdf2.Key(newHash, password, kdf.Salt, kdf.Iterations, c.keyBytes)
	if err != nil {
		return nil, err
	}
	return decryptCBC(c, key, scheme.Cipher.Parameters.FullBytes, enc.Data)
}

// decryptCBC decrypts data and reads the key in it. With a wrong password that gives no sense.
func decryptCBC(c blockCipher, key, params, data []byte) (any, error) {
	var iv []byte
	if err := unmarshal(params, &iv); err != nil {
		return nil, err
	}
	block, err := c.block(key)
	if err != nil {
		return nil, err
	}
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errors.New("its encryption is damaged")
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > size {
		return nil, errPassword
	}
	private, err := x509.ParsePKCS8PrivateKey(plain[:len(plain)-padding])
	if err != nil {
		return nil, errPassword
	}
	return private, nil
}

// unmarshal reads DER that has nothing behind it.
func unmarshal(der []byte, v any) error {
	rest, err := asn1.Unmarshal(der, v)
	if err == nil && len(rest) > 0 {
		err = errors.New("there is something behind the end")
	}
	return err
}
