package conf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawConfig parses a file of random keys with values that mean something and values that do not; nil if it has faults.
func drawConfig(t *rapid.T) *Config {
	lines := []string{"dataDir=/d", "clientPort=2181"}
	name := rapid.SampledFrom(append(keyNames(), "authProvider.1", "authProvider.a b", "superUser.=:x", "nio.numWorkerThreads", "unknown"))
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"", "true", "false", "TRUE", "yes", "no", "0", "1", "-1", "3", "0x10", "2181", "70000", "0.5", "need", "pkcs12",
			"a,b, c", "WARN,CONSOLE", "gz", "observer", "ruok, mntr", "*", "/some/path.jks", "com.example.Class"}),
		rapid.StringN(0, 10, 20))
	for range rapid.IntRange(0, 12).Draw(t, "lines") {
		key := name.Draw(t, "key")
		if key == "dynamicConfigFile" {
			continue // there is no such file
		}
		lines = append(lines, escapeKey(key)+"="+escape(strings.ToValidUTF8(value.Draw(t, "value"), "?")))
	}
	c, err := parse([]byte(strings.Join(lines, "\n")), nil)
	if err != nil {
		return nil
	}
	return c
}

func keyNames() (list []string) {
	for _, k := range keys {
		list = append(list, k.name)
	}
	return list
}

// TestPrintedFormMeansTheSame: whatever a configuration holds, what String prints parses to an equal one, and prints the
// same again.
func TestPrintedFormMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		if c == nil {
			return
		}
		again, err := parse([]byte(c.String()), nil)
		require.NoError(t, err, "%s", c)
		require.Equal(t, stripped(c), stripped(again), "%s", c)
	})
}

// alwaysTheSame are the keys of which this version, or ZooKeeper, refuses every value that is not the default, or of which
// no value alone makes a whole.
var alwaysTheSame = names(`electionAlg dynamicConfigFile standaloneEnabled secureClientPort secureClientPortAddress
	enforce.auth.enabled sessionRequireClientSASLAuth metricsProvider.className quorum.auth.serverRequireSasl
	quorum.auth.learnerRequireSasl java.security.auth.login.config`)

// TestEveryKeyRoundTrips takes each key alone, so that none is left to chance.
func TestEveryKeyRoundTrips(t *testing.T) {
	seen := map[string]bool{}
	usual := defaults()
	for _, k := range keys {
		require.False(t, seen[k.name], "%s is in the table twice", k.name)
		seen[k.name] = true
		changed := 0
		for _, value := range []string{"", "true", "false", "no", "yes", "5", "70000", "0.25", "want", "PEM", "observer", "gz", "ruok", "DEBUG,CONSOLE", "/p", "json"} {
			c := defaults()
			if _, err := k.set(c, value); err != nil || shows(k, c) == shows(k, usual) {
				continue
			}
			c, err := parse([]byte(base+"clientPort=2181\n"+k.name+"="+value), nil)
			if err != nil {
				continue
			}
			changed++
			again, err := parse([]byte(c.String()), nil)
			require.NoError(t, err, "%s=%s", k.name, value)
			require.Equal(t, stripped(c), stripped(again), "%s=%s", k.name, value)
		}
		if !alwaysTheSame[k.name] {
			require.NotZero(t, changed, "no value of %s changes anything", k.name)
		}
	}
}

func shows(k key, c *Config) string {
	value, _ := k.show(c)
	return value
}

// TestEveryKeyIsShownOrSecret: what operators set can be read back by name.
func TestEveryKeyIsShownOrSecret(t *testing.T) {
	c := mustParse(t, base+"clientPort=2181\nssl.keyStore.password=hunter2\nsuperUser.a=x", nil)
	value, ok := c.Value("clientPort")
	require.True(t, ok)
	require.Equal(t, "2181", value)
	value, ok = c.Value("superUser.a")
	require.True(t, ok)
	require.Equal(t, "x", value)
	for _, name := range []string{"ssl.keyStore.password", "nothing", "dataLogDir"} {
		_, ok = c.Value(name)
		require.False(t, ok, name)
	}
}

// TestPrintedFormOfAnEnsemble: server lines, groups and the file that holds them mean the same when they are read again.
func TestPrintedFormOfAnEnsemble(t *testing.T) {
	const limits = base + "clientPort=2181\ninitLimit=10\nsyncLimit=5\n"
	files := map[string]string{"/c/zoo.cfg.dynamic.1f": "server.1=a:2888:3888:participant;2181\nserver.2=b:2888:3888:participant;2181\nserver.3=c:2888:3888:observer"}
	for _, text := range []string{
		limits + "server.1=a:2888:3888\nserver.2=b:2888:3888;[::1]:2182\nserver.3=c:2888:3888\ngroup.1=1:2\ngroup.2=3\nweight.3=2\n",
		limits + "server.1=a:2888:3888\nstandaloneEnabled=false\npeerType=observer\nleaderServes=no\n",
		limits + "dynamicConfigFile=/c/zoo.cfg.dynamic.1f\nobserverMasterPort=2191\nsuperUser.x=y",
	} {
		c, err := member(text, "1", files)
		require.NoError(t, err, text)
		again, err := member(c.String(), "1", files)
		require.NoError(t, err, "%s", c)
		require.Equal(t, stripped(c), stripped(again), "%s", c)
		require.Equal(t, c.Ensemble.Version(), again.Ensemble.Version())
	}
}
