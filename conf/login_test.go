package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/sasl"
)

const (
	provided = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
	jaasText = `Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
    user_super="hunter1" user_bob="hunter2";
};
QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_zk="hunter3"; };
QuorumLearner { org.apache.zookeeper.server.auth.DigestLoginModule required username="zk" password="hunter3"; };
Kerberos {
  com.sun.security.auth.module.Krb5LoginModule required
    useKeyTab=true;
};
`
)

// withJAAS parses the configuration of server 1 with a JAAS file.
func withJAAS(t *testing.T, text, jaas string) (*Config, []string) {
	t.Helper()
	c, err := member(text+"java.security.auth.login.config=/d/jaas.conf\n", "1", map[string]string{"/d/jaas.conf": jaas})
	if err == nil {
		return c, nil
	}
	var e *Error
	require.ErrorAs(t, err, &e)
	return nil, texts(e.Faults)
}

func TestLogins(t *testing.T) {
	const bare = `java.security.auth.login.config: ZooKeeper takes this one as -Djava.security.auth.login.config only and would ignore the line; here it counts`
	c, faults := withJAAS(t, base+"clientPort=1\nfips-mode=false\nSASLAuthenticationProvider.superPassword=hunter4\nsuperUser.x=bob\n"+provided, jaasText)
	require.Empty(t, faults)
	require.Equal(t, []string{"zoo.cfg:7: " + bare}, texts(c.Warnings))
	require.Equal(t, sasl.Users{"super": "hunter1", "bob": "hunter2"}, c.Security.SASL.Users)
	require.Nil(t, c.Security.SASL.QuorumUsers, "a standalone server has no others")
	require.Empty(t, c.NoSASL())
	require.True(t, c.HasAuthScheme("sasl") && c.HasAuthScheme("digest") && c.HasAuthScheme("ip"))
	require.False(t, c.HasAuthScheme("x509") || c.HasAuthScheme("world") || c.HasAuthScheme(""))
	require.Nil(t, c.EnforcedSchemes())
	require.NotContains(t, c.String(), "hunter")
	require.Contains(t, c.String(), "\njava.security.auth.login.config=/d/jaas.conf\n")
	require.Contains(t, c.String(), "# SASLAuthenticationProvider.superPassword is set, and not shown\n")

	c, faults = withJAAS(t, three+"quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\nfips-mode=false\n", jaasText)
	require.Empty(t, faults)
	require.Equal(t, sasl.Users{"zk": "hunter3"}, c.Security.SASL.QuorumUsers)
	require.Equal(t, sasl.Login{User: "zk", Password: "hunter3"}, c.Security.SASL.QuorumLogin)
	require.Contains(t, texts(c.Warnings), "zoo.cfg:11: java.security.auth.login.config: clients can log in by SASL, but access control lists with the scheme sasl are refused; "+
		"add authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
	require.Contains(t, c.String(), "\nquorum.auth.enableSasl=true\n")
	require.NoError(t, c.Validate())
}

func TestFaultsOfLogins(t *testing.T) {
	const (
		fips   = "fips-mode is true, its default, and excludes DIGEST-MD5; set fips-mode=false (-Dzookeeper.fips-mode=false)"
		quorum = three + "quorum.auth.enableSasl=true\n"
		both   = quorum + "quorum.auth.learnerRequireSasl=true\n"
	)
	tests := []struct{ name, text, jaas, want string }{
		{"syntax", base, "Server {\n  nonsense", `/d/jaas.conf:2: required, requisite, sufficient or optional is expected, and not the end of the file`},
		{"Kerberos", base + "sasl.serverconfig=Kerberos\n", jaasText, `/d/jaas.conf:8: section "Kerberos": Kerberos is not supported by this version; use org.apache.zookeeper.server.auth.DigestLoginModule, or TLS with certificates`},
		{"Kerberos between servers", quorum + "fips-mode=false\nquorum.auth.learner.saslLoginContext=Kerberos\n", jaasText, `/d/jaas.conf:8: section "Kerberos": Kerberos is not supported by this version; use org.apache.zookeeper.server.auth.DigestLoginModule, or TLS with certificates`},
		{"no section of users", quorum + "quorum.auth.server.saslLoginContext=Mine\n", jaasText, "zoo.cfg:7: quorum.auth.enableSasl: there is no section Mine with the users that are let in as other servers in /d/jaas.conf"},
		{"no section of the own user", quorum + "quorum.auth.learner.saslLoginContext=Mine\n", jaasText, "zoo.cfg:7: quorum.auth.enableSasl: there is no section Mine with the user that this server logs in as to others in /d/jaas.conf"},
		{"no own user", quorum + "quorum.auth.learner.saslLoginContext=QuorumServer\n", jaasText, `/d/jaas.conf:5: section "QuorumServer": no user to log in as; write username="..." password="..." behind the login module`},
		{"fips between servers", both, jaasText, "zoo.cfg:8: quorum.auth.learnerRequireSasl: servers cannot log in to one another: " + fips},
		{"fips and nothing but SASL", base + provided + "sessionRequireClientSASLAuth=true\n", jaasText, "zoo.cfg:3: sessionRequireClientSASLAuth: only clients that log in by SASL are to be served, and none can: " + fips},
		{"nobody and nothing but SASL", base + provided + "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\nsasl.serverconfig=Mine\n", jaasText, "zoo.cfg:4: enforce.auth.schemes: only clients that log in by SASL are to be served, and none can: there is no section Mine in /d/jaas.conf"},
		{"no provider", base + "sessionRequireClientSASLAuth=true\nfips-mode=false\n", jaasText, "zoo.cfg:2: sessionRequireClientSASLAuth: Authentication scheme sasl is not available. Add " + strings.TrimSpace(provided)},
		{"no schemes", base + "enforce.auth.enabled=true\n", jaasText, "zoo.cfg:2: enforce.auth.enabled is true, enforce.auth.schemes must be configured"},
		{"unknown scheme", base + "enforce.auth.enabled=true\nenforce.auth.schemes=digest, nonesuch\n", jaasText, "zoo.cfg:3: enforce.auth.schemes: Authentication scheme nonesuch is not available."},
		{"digest is off", base + "enforce.auth.enabled=true\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false\n", jaasText, "zoo.cfg:3: enforce.auth.schemes: Authentication scheme digest is not available."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, faults := withJAAS(t, tt.text, tt.jaas)
			require.Equal(t, []string{tt.want}, faults)
		})
	}
	_, err := member(base+"java.security.auth.login.config=/nowhere\n", "", nil)
	require.ErrorContains(t, err, "zoo.cfg:2: java.security.auth.login.config: file does not exist")
	_, err = member(quorum, "1", nil)
	require.ErrorContains(t, err, "there is no section QuorumServer with the users that are let in as other servers; name its file by java.security.auth.login.config")
}

func TestRemarksAboutLogins(t *testing.T) {
	const fips = "fips-mode is true, its default, and excludes DIGEST-MD5; set fips-mode=false (-Dzookeeper.fips-mode=false)"
	tests := []struct{ text, want string }{
		{base + provided, "zoo.cfg:3: java.security.auth.login.config: no client can log in by SASL: " + fips},
		{base + provided + "sasl.serverconfig=Mine\n", "zoo.cfg:2: authProvider.1: no client can log in by SASL: there is no section Mine in /d/jaas.conf"},
		{base + provided + "sasl.serverconfig=Mine\nsuperUser=bob\n", "zoo.cfg:4: superUser: no effect: nobody gets these rights, because there is no section Mine in /d/jaas.conf"},
		{three + "quorum.auth.enableSasl=true\n", "zoo.cfg:7: quorum.auth.enableSasl: other servers cannot log in to this one: " + fips},
		{base + "authProvider.7=com.example.Mine\n", "zoo.cfg:2: authProvider.7: no effect: this auth scheme is not supported by this version, clients that use it are refused"},
	}
	for _, tt := range tests {
		c, faults := withJAAS(t, tt.text, jaasText)
		require.Empty(t, faults)
		require.Contains(t, texts(c.Warnings), tt.want)
		require.NotContains(t, strings.Join(texts(c.Warnings), "\n"), "hunter")
	}
	// A file that is there for something else is no reason to say anything.
	c, faults := withJAAS(t, base+"clientPort=1\nenforce.auth.schemes=digest\nenforce.auth.enabled=true\nauthProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n", "KafkaServer {};")
	require.Empty(t, faults)
	require.Len(t, c.Warnings, 1)
	require.Equal(t, []string{"digest"}, c.EnforcedSchemes())
	require.True(t, c.HasAuthScheme("ensemble"))
	require.Equal(t, "there is no section Server in /d/jaas.conf", c.NoSASL())
}

// TestJAASFile: the file is found by the names that Java takes, and values may name properties.
func TestJAASFile(t *testing.T) {
	dir := t.TempDir()
	file, jaas := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "jaas.conf")
	require.NoError(t, os.WriteFile(file, []byte("dataDir=/d\nclientPort=1\n"), 0o600))
	require.NoError(t, os.WriteFile(jaas, []byte(`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="${bobs}"; };`), 0o600))
	for _, name := range []string{jaas, "=" + jaas, "file:" + jaas, "file://" + jaas} {
		c, err := Load(file, map[string]string{"java.security.auth.login.config": name, "bobs": "secret"})
		require.NoError(t, err, name)
		require.Equal(t, sasl.Users{"bob": "secret"}, c.Security.SASL.Users)
	}
	_, err := Load(file, map[string]string{"java.security.auth.login.config": jaas})
	require.ErrorContains(t, err, jaas+":1: the value names a property by ${...} that is not set; set it with -D")
}

// TestReloadOfUsers: who may log in is taken while the server runs, and passwords are not shown.
func TestReloadOfUsers(t *testing.T) {
	const text = base + "clientPort=1\nfips-mode=false\n" + provided
	old, _ := withJAAS(t, text, jaasText)
	same, _ := withJAAS(t, text, jaasText)
	changes, needRestart := Reload(old, same)
	require.Empty(t, changes)
	require.Empty(t, needRestart)
	other, _ := withJAAS(t, text+"superUser.x=bob\n", strings.Replace(jaasText, "hunter2", "hunter9", 1))
	changes, needRestart = Reload(old, other)
	require.Equal(t, []Change{{jaasFileKey, notShown, notShown}}, changes)
	require.Equal(t, []Change{{"superUser.x", "", "bob"}}, needRestart)
	taken := Take(old, other)
	require.Equal(t, "hunter9", taken.Security.SASL.Users["bob"])
	require.Empty(t, taken.Security.SuperUsers)
	require.Equal(t, "hunter2", old.Security.SASL.Users["bob"])
}
