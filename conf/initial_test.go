package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFileTextHasNoSecrets: the text is that of the file, but for what may be a secret, however it is written.
func TestFileTextHasNoSecrets(t *testing.T) {
	text := `# a comment
dataDir=/d
clientPort : 2181
connection_throttle_tokens=5
ssl.keyStore.password=hunter2
ssl.trustStore.password hunter2
# ssl.keyStore.password=hunter2
#the password is hunter2
ssl.quorum.keyStore.pass\u0077ord = hunter2 \
   hunter2\
   hunter2
tickTime=2000
DigestAuthenticationProvider.superDigest=super:hunter2
my.secret=hunter2\
 hunter2
initLimit=\
  5
`
	want := `# a comment
dataDir=/d
clientPort : 2181
connection_throttle_tokens=5
ssl.keyStore.password=(not shown)
ssl.trustStore.password=(not shown)
# (not shown)
# (not shown)
ssl.quorum.keyStore.password=(not shown)
tickTime=2000
DigestAuthenticationProvider.superDigest=(not shown)
my.secret=(not shown)
initLimit=\
  5
`
	require.Equal(t, want, withoutSecrets([]byte(text)))
	require.Equal(t, want, withoutSecrets([]byte(strings.ReplaceAll(text, "\n", "\r\n"))))
	require.Equal(t, "a=\u00fc", withoutSecrets([]byte("a=\xfc")))
	require.Empty(t, withoutSecrets(nil))

	file := filepath.Join(t.TempDir(), "zoo.cfg")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := Load(file, nil)
	require.NoError(t, err)
	require.Equal(t, want, c.FileText)
	require.Equal(t, embedded, Default().FileText)
	c, err = FromArguments([]string{"2181", "/d"}, nil)
	require.NoError(t, err)
	require.Empty(t, c.FileText)
}

func TestSystemProperties(t *testing.T) {
	c := mustParse(t, base+"clientPort=1\nsnapCount=500\nssl.keyStore.password=hunter2\nDigestAuthenticationProvider.superDigest=super:hunter2\njute.maxbuffer=5000\n",
		map[string]string{"zookeeper.admin.serverPort": "81"})
	require.Equal(t, map[string]string{
		"zookeeper.snapCount": "500", "zookeeper.ssl.keyStore.password": "(not shown)", "zookeeper.admin.serverPort": "81",
		"zookeeper.DigestAuthenticationProvider.superDigest": "(not shown)", "jute.maxbuffer": "5000",
	}, c.Properties())
}

// TestAdminKeysAreInForce: a change of the admin server takes effect at a restart, and says so.
func TestAdminKeysAreInForce(t *testing.T) {
	c := mustParse(t, base+"clientPort=1\nadmin.serverPort=81\nadmin.httpVersion=11\n", nil)
	require.Empty(t, c.Warnings)
	require.Equal(t, []string{"admin.httpVersion"}, c.WithoutEffect)
	require.Contains(t, c.String(), "\nadmin.serverPort=81\n")
	_, later := Reload(mustParse(t, base+"clientPort=1\n", nil), c)
	require.Equal(t, []Change{{Key: "admin.serverPort", From: "8080", To: "81"}}, later)
	require.Equal(t, "127.0.0.1", Default().Admin.Address, "without a file only this machine is served")
	c = mustParse(t, base+"clientPort=1\nadmin.servrPort=81\n", nil)
	require.Equal(t, []string{"zoo.cfg:3: admin.servrPort: unknown key without effect (ZooKeeper would make it the system property zookeeper.admin.servrPort); did you mean admin.serverPort?"},
		texts(c.Warnings))
}
