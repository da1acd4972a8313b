package znode

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/jute"
	"zabra/wire"
)

func TestStoredText(t *testing.T) {
	for stored, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		"\u00fc\uffef":             "\u00fc\uffef",
		"\xed\xa0\xbd\xed\xb8\x80": "\U0001f600",
		"\xed\xa0\x80\xed\xb0\x80": "\U00010000",
		"\xed\xaf\xbf\xed\xbf\xbf": "\U0010ffff",
		"a\xed\xa0\xbd\xed\xb8\x80\xed\xa0\xbd\xed\xb8\x80b": "a\U0001f600\U0001f600b",
		"\xed\xb8\x80\xed\xa0\xbd":                           "\ufffd\ufffd", // the wrong way round
		"\xed\xa0\xbd":                                       "\ufffd",
		"\xed\xa0\xbd\xed\xb8":                               "\ufffd\ufffd",
		"\xff\xed\xa0\xbd\xed\xb8\x80":                       "\ufffd\U0001f600",
	} {
		require.Equal(t, want, string(storedText([]byte(stored))), "%q", stored)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if !utf8.ValidString(text) {
			text = ""
		}
		var e jute.Encoder
		e.String(text)
		require.Equal(t, text, string(storedText(e.Bytes()[4:])))
	})
}

// TestACLOfSupplementaryCharactersIsKept: such ids come through the log and through a snapshot.
func TestACLOfSupplementaryCharactersIsKept(t *testing.T) {
	acl := []wire.ACL{{Perms: 1, Scheme: "digest", ID: "\U0001f600:x"}, {Perms: 2, Scheme: "ip", NullID: true}, {Perms: 3, Scheme: "digest", ID: "\ufffd:\u00fc\U0001f600"}}
	s := newScript(t, Config{})
	create := createTxn("/a", -1)
	create.ACL = acl
	s.create("/b", "")
	for _, txn := range []Txn{create, {Type: wire.OpSetACL, Path: []byte("/b"), ACL: acl, Version: 1}} {
		var h TxnHeader
		var got Txn
		_, _, err := DecodeTxn(AppendTxn(nil, &TxnHeader{Type: txn.Type}, &txn, nil), 0, &h, &got)
		require.NoError(t, err)
		require.Equal(t, acl, got.ACL)
		s.do(got)
	}
	tree := reload(t, s.tree)
	for _, path := range []string{"/a", "/b"} {
		n, ok := tree.Find([]byte(path))
		require.True(t, ok)
		require.Equal(t, acl, tree.ACL(n).Entries())
	}
}
