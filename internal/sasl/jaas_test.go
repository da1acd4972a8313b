package sasl

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const digestClass = "org.apache.zookeeper.server.auth.DigestLoginModule"

func parseJAAS(t *testing.T, text string) *JAAS {
	t.Helper()
	file, err := ParseJAAS([]byte(text), nil)
	require.NoError(t, err)
	return file
}

func TestJAAS(t *testing.T) {
	file := parseJAAS(t, `// of the image
/* comment
   // with another in it */
Server {
  `+digestClass+` REQUIRED
    user_super="adminsecret"    / a single slash does it, too
    user_bob="of \"bob\" \\ \101\n//no comment"
    "user_a@b"=word;
};
Client { `+digestClass+` required username="bob" password="of bob"; };
Quorum-Server.2 {};
`)
	server := file.Section("Server")
	require.Equal(t, 4, server.Line)
	require.Equal(t, 5, server.Modules[0].Line)
	require.Equal(t, "required", server.Modules[0].Flag)
	users, err := server.Users()
	require.NoError(t, err)
	require.Equal(t, Users{"super": "adminsecret", "bob": "of \"bob\" \\ A\n//no comment", "a@b": "word"}, users)
	_, err = server.Login()
	require.EqualError(t, err, `line 4: section "Server": no user to log in as; write username="..." password="..." behind the login module`)
	login, err := file.Section("Client").Login()
	require.NoError(t, err)
	require.Equal(t, Login{"bob", "of bob"}, login)
	users, err = file.Section("Quorum-Server.2").Users()
	require.NoError(t, err)
	require.Equal(t, Users{}, users, "there, and empty")
	require.Nil(t, file.Section("server"), "names are compared to the letter")
}

// TestJAASAsOthersWriteIt: the files of images and guides.
func TestJAASAsOthersWriteIt(t *testing.T) {
	file := parseJAAS(t, "Client {\r\n  org.apache.zookeeper.server.auth.DigestLoginModule required\r\n  username=\"zk\"\r\n  password=\"p\";\r\n};\r\n"+
		"Server {\r\n  org.apache.zookeeper.server.auth.DigestLoginModule required\r\n  user_zk=\"p\"\r\n  user_zk=\"q\";\r\n};\r\n"+
		`KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required serviceName="kafka" debug=true; };
com.sun.security.jgss.initiate { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/zk.keytab" principal="zk/host@REALM"; };
Two { `+digestClass+` optional user_a="1"; `+digestClass+` sufficient user_b="2" user_a="3"; };`)
	users, err := file.Section("Server").Users()
	require.NoError(t, err)
	require.Equal(t, Users{"zk": "q"}, users, "the last one counts")
	users, err = file.Section("Two").Users()
	require.NoError(t, err)
	require.Equal(t, Users{"a": "3", "b": "2"}, users)
	_, err = file.Section("com.sun.security.jgss.initiate").Users()
	require.ErrorContains(t, err, `section "com.sun.security.jgss.initiate": Kerberos is not supported by this version`)
	_, err = file.Section("KafkaServer").Users()
	require.ErrorContains(t, err, `the login module "org.apache.kafka.common.security.plain.PlainLoginModule" is not known`)
	_, err = file.Section("KafkaServer").Login()
	require.ErrorContains(t, err, "is not known")
}

func TestJAASFaults(t *testing.T) {
	const begin = "Server {\n" + digestClass + " required\n"
	tests := []struct{ name, text, want string }{
		{"no name", "{ };", `line 1: the name of a section is expected, and not '{'`},
		{"no brace", "Server hunter2", `line 1: '{' behind the name of a section is expected, and not a word`},
		{"no semicolon", begin + `user_a="hunter2"` + "\n}", `line 4: an option, or ; behind the last one is expected, and not '}'`},
		{"no semicolon at the end", begin + `;` + "\n}\nClient", `line 5: ';' behind the } of a section is expected, and not a word`},
		{"no flag", "Server {\n" + digestClass + ";};", `line 2: required, requisite, sufficient or optional is expected, and not ';'`},
		{"wrong flag", "Server {\n" + digestClass + "\nuser_hunter2=\"x\";};", `line 3: required, requisite, sufficient or optional has to stand behind the class of a login module`},
		{"no equals", begin + `user_a "hunter2";`, `line 3: '=' behind the name of an option is expected, and not a text in quotes`},
		{"no value", begin + `user_a=;`, `line 3: the value of an option, in double quotes is expected, and not ';'`},
		{"value in single quotes", begin + `user_a='hunter2';`, `line 3: the value of an option, in double quotes is expected, and not '\''`},
		{"open quotes", begin + `user_a="hunter2` + "\n;};", `line 3: a text in quotes that does not end on its line`},
		{"open at the end", begin + `user_a="hunter2`, `line 3: a text in quotes that does not end`},
		{"open behind a backslash", begin + `user_a="hunter2\`, `line 3: a text in quotes that does not end`},
		{"open comment", "\n/* hunter2", `line 2: a comment that does not end`},
		{"open comment with a star", "/*/", `line 1: a comment that does not end`},
		{"number sign", "# hunter2\n", `line 1: the name of a section is expected, and not '#', which begins no comment here: write //`},
		{"end", "Server {", `line 1: the class of a login module, or } is expected, and not the end of the file`},
		{"twice", "A {};\nB {};\nA {};", `line 3: the section "A" is there twice, first on line 1`},
		{"property", begin + `user_a="x${hunter2}";};`, "line 3: the value names a property by ${...} that is not set; set it with -D"},
		{"open property", begin + `user_a="x${";};`, "line 3: the value names a property by ${...} that is not set; set it with -D"},
		{"long word", strings.Repeat("a", 70000), "line 1: a word of more than 65536 bytes"},
		{"long text", `"` + strings.Repeat("a", 70000) + `"`, "line 1: a text of more than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseJAAS([]byte(tt.text), nil)
			require.EqualError(t, err, tt.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := parseJAAS(t, begin+`user_="x";};`).Section("Server").Users()
	require.EqualError(t, err, `line 2: section "Server": an option user_ without the name of a user`)
}

func TestJAASProperties(t *testing.T) {
	property := func(name string) (string, bool) { return "of " + name, name == "zk.password" }
	file, err := ParseJAAS([]byte(`Server { `+digestClass+` required user_a="<${zk.password}>${/}" user_b="$a $ {";};`), property)
	require.NoError(t, err)
	users, err := file.Section("Server").Users()
	require.NoError(t, err)
	require.Equal(t, Users{"a": "<of zk.password>/", "b": "$a $ {"}, users)
}

// FuzzJAAS: whatever stands in a file, reading it ends, with a line that there is.
func FuzzJAAS(f *testing.F) {
	f.Add("Server {\n" + digestClass + " required user_a=\"b\";\n};")
	f.Add("a{};/*\n*/b{};//")
	f.Add("\"\\377\\")
	f.Add("/*/")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseJAAS([]byte(text), nil)
		if err != nil {
			var at *FileError
			require.True(t, errors.As(err, &at))
			require.LessOrEqual(t, at.Line, 1+strings.Count(text, "\n"))
			require.Positive(t, at.Line)
			return
		}
		for name, s := range file.sections {
			require.Equal(t, name, s.Name)
			users, err := s.Users()
			require.Equal(t, err == nil, users != nil)
			_, _ = s.Login()
		}
	})
}
