package znode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidatePath(t *testing.T) {
	tests := []struct {
		path string
		want error
	}{
		{"", ErrPathEmpty},
		{"a", ErrPathRelative},
		{"a/b", ErrPathRelative},
		{"/", nil},
		{"/a", nil},
		{"/a/b/c", nil},
		{"/a/", ErrPathTrailing},
		{"//", ErrPathTrailing},
		{"//a", ErrPathEmptyName},
		{"/a//b", ErrPathEmptyName},
		{"/.", ErrPathDots},
		{"/..", ErrPathDots},
		{"/a/./b", ErrPathDots},
		{"/a/../b", ErrPathDots},
		{"/./a", ErrPathDots},
		{"/a/..", ErrPathDots},
		{"/.a", nil},
		{"/...", nil},
		{"/a..b", nil},
		{"/a..", nil},
		{"/..a/b", nil},
		{"/ a b ", nil},
		{"/\x00", ErrPathNUL},
		{"/a\x00b", ErrPathNUL},
		{"/\x01", ErrPathChar},
		{"/\t", ErrPathChar},
		{"/\x1f", ErrPathChar},
		{"/\x20", nil},
		{"/\x7e", nil},
		{"/\x7f", ErrPathChar},
		{"/\u0080", ErrPathChar},
		{"/\u009f", ErrPathChar},
		{"/\u00a0", nil},
		{"/é", nil},
		{"/\ud7ff", nil},
		{"/\xed\xa0\x80", ErrPathChar}, // U+D800, as some encoders write it
		{"/\ue000", ErrPathChar},
		{"/\uf8ff", ErrPathChar},
		{"/\uf900", nil},
		{"/\uffef", nil},
		{"/\ufff0", ErrPathChar},
		{"/\ufffd", ErrPathChar},
		{"/\uffff", ErrPathChar},
		{"/\xff", ErrPathChar}, // malformed UTF-8 reads as U+FFFD
		{"/a\xc3", ErrPathChar},
		{"/\U00010000", ErrPathChar},
		{"/\U0001f600", ErrPathChar},
		{"/\U0010ffff", ErrPathChar},
		{"/" + strings.Repeat("x", 5000), nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, ValidatePath([]byte(tt.path)), "%q", tt.path)
	}
	require.Equal(t, ErrPathNull, ValidatePath(nil))
}

// Every code point below the surrogates and above them is either refused or accepted by the ranges that ZooKeeper
// documents.
func TestValidatePathAllCodePoints(t *testing.T) {
	for r := rune(1); r <= 0x10ffff; r++ {
		if r >= 0xd800 && r <= 0xdfff || r == '/' || r == '.' {
			continue
		}
		refused := r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
		err := ValidatePath([]byte("/" + string(r)))
		if refused != (err != nil) {
			t.Fatalf("U+%04X: refused %v, got %v", r, refused, err)
		}
	}
}

func TestValidatePathDoesNotAllocate(t *testing.T) {
	good, bad := []byte("/service/é/members/n-0000000001"), []byte("/a/\x07")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if ValidatePath(good) != nil || ValidatePath(bad) == nil || WeakPath(good) != nil || ReservedPath(good) {
			t.Fatal("wrong verdict")
		}
	}))
}

func TestWeakPath(t *testing.T) {
	tests := []struct {
		path []byte
		want error
	}{
		{nil, ErrPathNull},
		{[]byte(""), ErrPathNoSlash},
		{[]byte("foo"), ErrPathNoSlash},
		{[]byte("foo/"), nil},
		{[]byte("/"), nil},
		{[]byte("//x/"), nil},
		{[]byte("/a\x00"), ErrPathNUL},
		{[]byte("/\x01"), nil},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, WeakPath(tt.path), "%q", tt.path)
	}
}

func TestReservedPath(t *testing.T) {
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		require.True(t, ReservedPath([]byte(p)), p)
	}
	for _, p := range []string{"", "/zookeeper/", "/zookeeper/quota/a", "/zookeepers", "/a"} {
		require.False(t, ReservedPath([]byte(p)), p)
	}
}

func TestSplitPath(t *testing.T) {
	tests := []struct{ path, parent, name string }{
		{"/", "/", ""},
		{"/a", "/", "a"},
		{"/a/b", "/a", "b"},
		{"/a/b/", "/a/b", ""},
		{"//x", "/", "x"},
		{"a/b", "a", "b"},
	}
	for _, tt := range tests {
		parent, name := SplitPath([]byte(tt.path))
		require.Equal(t, tt.parent, string(parent), tt.path)
		require.Equal(t, tt.name, string(name), tt.path)
	}
	parent, name := SplitPath([]byte("foo"))
	require.Nil(t, parent)
	require.Equal(t, "foo", string(name))
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"/", "/a/b", "/a//b", "/..", "/\xff", "/\U0001f600"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		if ValidatePath(path) != nil {
			return
		}
		require.NoError(t, WeakPath(path))
		require.NotContains(t, string(path), "//")
		parent, _ := SplitPath(path)
		require.NoError(t, ValidatePath(parent), "the parent of a valid path is valid")
	})
}

func BenchmarkValidatePath(b *testing.B) {
	path := []byte("/service/discovery/members/n-0000000001")
	b.ReportAllocs()
	for b.Loop() {
		if ValidatePath(path) != nil {
			b.Fatal("refused")
		}
	}
}
